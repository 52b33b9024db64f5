package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/checkpoint"
)

var (
	manyQuestions   = flag.Int("questions", 60, "how many changes one principal asks about")
	manyCheckpoints = flag.Int("checkpoints", 600, "how many checkpoints the methods list")
)

// A principal that floods the queue has its share of it. Another one is asked about, and one command ends the flood.
func TestManyQuestions(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	data, root := filepath.Join(dir, "data"), filepath.Join(dir, "tree")
	must(t, os.Mkdir(root, 0o700))
	flood, other, operator := newToken(t, data, "--principal", "ci"), newToken(t, data, "--principal", "bob"), newToken(t, data, "--principal", "ann", "--operator")
	s := startServer(t, flood, "--root", root, "--data-dir", data)
	write := func(secret, name string, answers chan string) {
		answers <- s.askAs(secret, "capabilities.invoke", `{"capability":"Write","arguments":{"file_path":"`+root+"/"+name+`","content":"new\n"}}`)
	}
	const share = 50
	answers, bobs := make(chan string, *manyQuestions), make(chan string, 1)
	jobs := make(chan string)
	for range min(*manyQuestions, share+10) { // a server takes so many calls of one principal at the same time
		go func() {
			for name := range jobs {
				write(flood, name, answers)
			}
		}()
	}
	for i := range *manyQuestions {
		jobs <- fmt.Sprint("f", i)
	}
	close(jobs)
	for range *manyQuestions - share {
		if got := <-answers; !strings.Contains(got, "50 of your questions wait already") {
			t.Fatal(got)
		}
	}
	go write(other, "bob", bobs)
	for strings.Contains(s.says("waits for an answer"), "by ci/") {
	}
	var list struct {
		Result struct {
			Approvals []struct{ ID, Principal string }
		}
	}
	must(t, json.Unmarshal([]byte(s.askAs(operator, "approvals.list", `{}`)), &list))
	if all := list.Result.Approvals; len(all) != share+1 || all[share].Principal != "bob" {
		t.Fatalf("%d wait: %v", len(all), all)
	}
	if got := s.askAs(operator, "approvals.approve", `{"id":"`+list.Result.Approvals[share].ID+`","unseen":true}`) + <-bobs; !strings.Contains(got, `"success":true`) {
		t.Error(got)
	}
	if status, _, errs := runWith(t, "", "approvals", "deny", "--data-dir", data, "--principal", "ci", "--reason", "a flood"); status != exitOK {
		t.Error(errs)
	}
	for range share {
		if got := <-answers; !strings.Contains(got, "a flood") {
			t.Fatal(got)
		}
	}
}

// Pages of a long history have each change once.
func TestManyCheckpoints(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	data, root := filepath.Join(dir, "data"), filepath.Join(dir, "tree")
	must(t, os.Mkdir(root, 0o700))
	agent, operator := newToken(t, data, "--principal", "ci"), newToken(t, data, "--principal", "ann", "--operator")
	db, err := checkpoint.Open(filepath.Join(data, "checkpoints"), checkpoint.Options{})
	must(t, err)
	for i := range *manyCheckpoints {
		_, err := db.Save(t.Context(), checkpoint.Op{Tool: "Write", Kind: checkpoint.KindWrite, Principal: "ci", Session: "s", Changes: []checkpoint.Change{
			{Path: fmt.Sprintf("%s/f%d", root, i), Role: "target", Before: checkpoint.State{Kind: checkpoint.Absent},
				After: checkpoint.State{Kind: checkpoint.File, Mode: 0o600, Size: 4}, AfterContent: []byte("new\n")}}})
		must(t, err)
	}
	must(t, db.Close())
	s := startServer(t, agent, "--root", root, "--data-dir", data)
	seen, pages := map[string]bool{}, 0
	for cursor := ""; ; pages++ {
		var page struct {
			Result struct {
				Changes []struct {
					Files []struct{ Path string }
				}
				Next string `json:"next_cursor"`
			}
		}
		got := s.askAs(operator, "checkpoints.list", fmt.Sprintf(`{"principal":"ci","session":"s","limit":250%s}`, cursor))
		must(t, json.Unmarshal([]byte(got), &page))
		for _, c := range page.Result.Changes {
			seen[c.Files[0].Path] = true
		}
		if page.Result.Next == "" || len(page.Result.Changes) != 250 {
			break
		}
		cursor = fmt.Sprintf(`,"cursor":%q`, page.Result.Next)
	}
	if len(seen) != *manyCheckpoints || pages != (*manyCheckpoints-1)/250 {
		t.Errorf("%d changes on %d pages", len(seen), pages)
	}
}
