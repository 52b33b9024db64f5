package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/serve/mcp"
	"moltisfs/internal/toolstest"
	"moltisfs/tools"
)

var ids = []string{"0", "-1", "7", "9007199254740991", "9007199254740993", "1764201600123456789", "-9007199254740995", "18446744073709551615",
	"123456789012345678901234567890", "1.5", "1e2", "-0.0", `""`, `"a"`, `"9007199254740993"`, `"\"id\":5"`, `"a\\"`}

// An id comes back as it was given, to the last digit, of calls, refusals and errors, in both ways of the protocol.
func TestIDsComeBack(t *testing.T) {
	f := file(t, toolstest.Tree(t), "a.txt", "one\n")
	for _, revision := range revisions {
		p := newPlain(t, config.Default(), tools.Options{}, mcp.Options{})
		meta := `"_meta":{` + stateless + `},`
		if revision == revisions[0] {
			meta = ""
			got := p.line("\ufeff" + `{"jsonrpc":"2.0","id":1234567890123456789,"method":"initialize","params":{"protocolVersion":"` + revision + `","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
			if !strings.Contains(got, `"id":1234567890123456789,"result"`) {
				t.Errorf("after a byte order mark: %s", got)
			}
		}
		for _, id := range ids {
			for _, method := range []string{
				`"method":"tools/call","params":{` + meta + `"name":"Read","arguments":{"file_path":` + string(mustJSON(t, f)) + `,"id":3}}`,
				`"params":{` + meta + `"name":"Read","arguments":{"file_path":` + string(mustJSON(t, f)) + `}},"method":"tools/call"`,
				`"method":"tools/list","params":{` + meta + `"x":[{"id":5}]}`, `"method":"ping","params":{"id":5}`, `"method":"no/such"`,
			} {
				for _, form := range []string{`{"jsonrpc":"2.0","id":%s,%s}`, `{%[2]s,"jsonrpc":"2.0" , "id" : %[1]s }`} {
					line := fmt.Sprintf(form, id, method)
					got := p.line(line)
					var m struct{ ID json.RawMessage }
					if err := json.Unmarshal([]byte(got), &m); err != nil || string(m.ID) != id {
						t.Errorf("%s: %s, %v", line, got, err)
					}
				}
			}
		}
	}
}

// Of calls that are under way each has its answer, however alike their ids are. One with the id of another is refused. A call is
// cancelled by its id, and hears of its progress by its token.
func TestNumbersNameOneCall(t *testing.T) {
	f := file(t, toolstest.Tree(t), "a.txt", "one\n")
	asked := make(chan string)
	p := newPlain(t, config.Default(), tools.Options{Approver: approverFunc(func(ctx context.Context, q tools.Question) (tools.Answer, error) {
		asked <- q.ID
		<-ctx.Done()
		return tools.Answer{Decision: tools.Cancelled}, nil
	})}, mcp.Options{})
	p.hello("2025-11-25", "{}")
	send := func(line string) {
		if _, err := io.WriteString(p.in, line+"\n"); err != nil {
			t.Error(err)
		}
	}
	next := func() string {
		for {
			got, err := p.out.ReadString('\n')
			must(t, err)
			if strings.Contains(got, "notifications/progress") && !strings.Contains(got, `"progressToken":9007199254740,`) {
				t.Error(got)
			}
			if !strings.Contains(got, "notifications/") {
				return got
			}
		}
	}
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	under := []string{"9007199254740993", "9007199254740992", "9007199254740994", `"9007199254740993"`, "1.5", "1", "-18446744073709551617"}
	for i, id := range under {
		send(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"Write","arguments":{"file_path":` + string(mustJSON(t, f+fmt.Sprint(i))) +
			`,"content":"new"},"_meta":{"progressToken":9007199254740}}}`)
		<-asked
	}
	for _, id := range under {
		send(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"Read","arguments":{"file_path":` + string(mustJSON(t, f)) + `}}}`)
		if got := next(); !strings.Contains(got, `"id":`+id+`,`) || !strings.Contains(got, "under way") {
			t.Errorf("the same id twice: %s", got)
		}
	}
	for told := ""; !strings.Contains(told, "notifications/progress"); { // each second there is some
		var err error
		if told, err = p.out.ReadString('\n'); err != nil || !strings.Contains(told, `"progressToken":9007199254740,`) {
			t.Fatal(told, err)
		}
	}
	send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9007199254740995}}`) // nobody's
	for _, id := range under {
		send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
		if got := next(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":`+id+`,`) {
			t.Errorf("cancelled %s: %s", id, got)
		}
	}
	send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	if got := next(); !regexp.MustCompile(`"id":1,"result"`).MatchString(got) {
		t.Errorf("an id that is free again: %s", got)
	}
}
