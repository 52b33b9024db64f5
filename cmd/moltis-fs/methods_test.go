package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"moltisfs/internal/audit"
	"moltisfs/internal/fleet"
	"moltisfs/internal/serve"
)

// Each method answers what its command does, and a caller's token has none of them.
func TestMethods(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	data, root := filepath.Join(dir, "data"), filepath.Join(dir, "tree")
	must(t, os.Mkdir(root, 0o700))
	config := filepath.Join(dir, "m.toml")
	must(t, os.WriteFile(config, []byte("[tools.fs]\nrequire_approval = false\ncheckpoint_before_mutation = true\nallow_paths = ['${ROOT}/**']\ndeny_paths = [\n"+
		"  '${ROOT}/x', # \"no\" entry ]\n  \"${ROOT}/**/*.log\",\n]\n[tools.policy]\ndeny = ['checkpoint_restore']\n"), 0o600))
	agent, operator := newToken(t, data, "--principal", "ci"), newToken(t, data, "--principal", "ann", "--operator")
	s := startServer(t, agent, "--root", root, "--data-dir", data, "--config", config)
	for i := range 3 {
		s.ask("capabilities.invoke", fmt.Sprintf(`{"capability":"Write","arguments":{"file_path":"%s/f%d","content":"new\n"}}`, root, i))
	}
	s.ask("capabilities.invoke", `{"capability":"Read","arguments":{"file_path":"`+root+`/b.log"}}`)
	ask := func(method, params string) string { t.Helper(); return s.askAs(operator, method, params) }
	id := regexp.MustCompile(`ck-[0-9A-Z]+`).FindString(ask("checkpoints.list", `{"limit":1}`))
	session := regexp.MustCompile(`run-[0-9a-z-]+`).FindString(ask("sessions.list", `{}`))
	secret := ""
	for _, c := range []struct{ method, params, want string }{
		{"sessions.list", `{}`, `"principal":"ci","session":"run-.*"client":"Go-http-client.*"calls":4,"changes":3,"refused":1}`},
		{"checkpoints.list", `{"limit":"2"}`, `"id":"` + id + `".*f2.*f1.*"next_cursor":"2"`},
		{"checkpoints.list", `{"paths":["` + root + `/f0"],"cursor":null,"since":"1h"}`, `"changes":\[\{[^{]*"files":\[\{"path":"` + root + `/f0","change":"created","added":1,"removed":0\}\]\}\]`},
		{"checkpoints.show", `{"id":"` + id + `"}`, `"id":"` + id + `".*"after":\{"kind":"file"`},
		{"checkpoints.diff", `{"id":"` + id + `"}`, `"kind":"checkpoint_diff".*"diff":"--- /dev/null`},
		{"tokens.list", `{"x":1}`, `"hint":"it takes no parameters"`},
		{"checkpoints.diff", `{"session":"` + session + `","since":"1h"}`, `"kind":"checkpoint_diff".*f2.*f0`},
		{"checkpoints.undo", `{"session":"` + session + `","dry_run":true}`, `"restored":false.*"dry_run":true`},
		{"checkpoints.undo", `{"principal":"ci","session":"` + session + `","yes":true}`, `"restored":true.*f2`},
		{"checkpoints.list", `{"limit":2}`, `"undo_of":"` + id + `".*"id":"` + id + `".*"undone_by":"ck-`},
		{"checkpoints.redo", `{"principal":"ci","session":"` + session + `","yes":true}`, `"restored":true.*f2`},
		{"checkpoints.list", `{"limit":1,"cursor":"4"}`, `"id":"` + id + `"[^}]*"files"`},
		{"checkpoints.restore", `{"id":"` + id + `","yes":true,"mode":"inverse"}`, `"restored":true.*f2`},
		{"checkpoints.rewind", `{"principal":"ci","session":"` + session + `","since":"1h","yes":true,"on_conflict":"skip"}`, `"restored":true`},
		{"sessions.list", `{}`, `"sessions":\[\{[^{]*"session":"run-[^{]*"calls":4,"changes":3,"refused":1}\]`}, // without those of the operator
		{"trash.list", `{}`, `"entries":\[`},
		{"audit.query", `{"rule":"` + root + `/**/*.log"}`, `"records":\[\{[^{]*"tool":"Read"[^{]*"rule_text":"` + regexp.QuoteMeta(root+"/**/*.log") + `","rule_at":"[^"]*m.toml:7"[^{]*\}\]`},
		{"audit.query", `{"principal":"ann"}`, `"records":\[\{[^{]*"token_create"[^{]*\}\]`},
		{"audit.query", `{"changes":true,"limit":1}`, `"tool":"checkpoint_restore".*"client":"operator ann".*"next_cursor":"0.\d+~[0-9A-Z]+"`},
		{"audit.refused", `{}`, `"outcome":"path_denied","rule":"deny_paths",.*"count":1`},
		{"audit.verify", `{}`, `"ok":true`},
		{"tokens.list", `{}`, `"principal":"ann","operator":true`},
		{"tokens.create", `{"principal":"new","read":["` + root + `"],"expires":"1h"}`, `"secret":"mfs_`},
		{"tokens.create", `{"principal":"new","operator":true}`, `-32602,"message":"tokens.create has no parameter \\"operator\\""`},
		{"tokens.revoke", `{"id":"tk-nosuch11"}`, `"code":-32005`},
		{"store.stats", `{}`, `"checkpoints":`},
		{"config.show", `{}`, `"undo":true.*"deny_paths":\["` + root + `/x".*"loaded":"`},
		{"doctor.list", `{}`, `"findings":`},
		// bad input
		{"audit.query", `{"limt":1}`, `-32602.*did you mean limit`},
		{"audit.query", `{"limit":0}`, `-32602,"message":"--limit can't be \\"0\\""`},
		{"audit.query", `{"limit":[1,2]}`, `-32602,"message":"limit must be a string"`},
		{"audit.query", `{"changes":"yes"}`, `-32602,"message":"changes must be true or false"`},
		{"audit.query", `{"session":{}}`, `-32602,"message":"session must be a string"`},
		{"audit.query", `{"session":""}`, `-32602.*is empty`},
		{"audit.query", `{"session":"a\u0000b"}`, `-32602`},
		{"audit.query", `{"cursor":"1.2.3"}`, `-32602`},
		{"audit.query", `[1]`, `-32602,"message":"params must be an object"`},
		{"audit.query", `{"config":"/etc/passwd"}`, `-32602,"message":"audit.query has no parameter`},
		{"sessions.list", `{"cursor":"-1"}`, `-32602`},
		{"sessions.list", `{"cursor":"99999999999999999999.1"}`, `-32602`},
		{"checkpoints.list", `{"paths":["f0"]}`, `-32602,"message":"paths takes absolute paths`},
		{"checkpoints.show", `{}`, `-32602,"message":"checkpoints.show needs id"`},
		{"checkpoints.show", `{"id":"ck-7777777777"}`, `-32005,"message":"there is no such checkpoint","data":\{"hint":.*"kind":"not_found"`},
		{"checkpoints.show", `{"id":"../../x"}`, `-32602`},
		{"checkpoints.undo", `{"principal":"nobody","session":"s"}`, `-32005`},
	} {
		got := ask(c.method, c.params)
		if !regexp.MustCompile(c.want).MatchString(got) || strings.Contains(got, agent) {
			t.Errorf("%s %s: %s\nwant %s", c.method, c.params, got, c.want)
		}
		if m := regexp.MustCompile(`mfs_[\w-]+`).FindString(got); m != "" {
			secret = m
		}
	}
	for _, m := range methods {
		if got := s.askAs(secret, m.name, `{}`); !strings.Contains(got, `"code":-32601`) || strings.Contains(got, m.name) {
			t.Errorf("a caller has %s: %s", m.name, got)
		}
	}
	if log := recordsOf(t, data); strings.Count(log, `"tool":"start"`) != 1 {
		t.Error("a method starts a program on record")
	}
}

// Pages of the audit log have each call once, whatever is written between them.
func TestAuditPages(t *testing.T) {
	t.Parallel()
	data := filepath.Join(realDir(t), "data")
	for i := range 7 { // an intent and an outcome each
		newToken(t, data, "--principal", fmt.Sprint("p", i))
	}
	calls, err := audit.Options{}.Open(filepath.Join(data, "audit"))
	must(t, err)
	defer calls.Close()
	in := func(cursor string) *invocation {
		v := map[string]string{"json": "true", "data-dir": data}
		if cursor != "" {
			v["cursor"] = cursor
		}
		return &invocation{values: v, remote: &remote{}}
	}
	var got []string
	for cursor, pages := "", 0; pages < 20; pages++ {
		page, err := in(cursor).auditPage(t.Context(), 2)
		must(t, err)
		for _, raw := range page.Records {
			var r struct{ Phase, Principal string }
			must(t, json.Unmarshal(raw, &r))
			got = append(got, r.Phase+" "+r.Principal)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
		newToken(t, data, "--principal", "later") // in the one log, and a call in the other
		must(t, calls.Append(audit.Record{Time: time.Now(), Phase: "outcome", Call: "later", Principal: "later"}))
	}
	want := []string{}
	for i := range 7 {
		want = append(want, fmt.Sprint("outcome p", 6-i))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// A method that the database of the fleet keeps from its answer says so: an operator has no other way to know.
func TestMethodInAnOutage(t *testing.T) {
	t.Parallel()
	told, ok := errors.AsType[*serve.Error](asMethodError(fmt.Errorf("reading the queue: %w", fleet.ErrFenced), nil))
	if !ok || !strings.Contains(told.Message, fleet.ErrFenced.Error()) || told.Data == nil {
		t.Errorf("%+v", told)
	}
	if err := asMethodError(errors.New("broken"), nil); errors.As(err, new(*serve.Error)) {
		t.Error("a fault of the host is for the log:", err)
	}
}
