package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"moltisfs/internal/testdir"
)

// Readiness, metrics and logs of a server. Each metric that the alerts and the dashboard ask for is there, and promtool finds nothing to say.
func TestHealth(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	data, root := filepath.Join(dir, "data"), filepath.Join(dir, "tree")
	must(t, os.Mkdir(root, 0o700))
	operator := newToken(t, data, "--principal", "ann", "--operator", "--expires", "1h")
	config := filepath.Join(dir, "m.toml")
	must(t, os.WriteFile(config, []byte("[tools.fs]\ncheckpoint_before_mutation = true\nrequire_approval = false\nallow_paths = ['${ROOT}/**']\n"), 0o600))
	status, _, errs := runWith(t, "", "call", "--config", config, "--root", root, "--data-dir", data, "Write", `{"file_path":"`+root+`/a","content":"a"}`)
	if status != exitOK {
		t.Fatal(errs)
	}
	s := startServer(t, operator, "--root", root, "--data-dir", data, "--config", config, "--log-format", "json")
	get := func(path, secret string) (int, string) {
		t.Helper()
		q, err := http.NewRequest("GET", s.url+path, nil)
		must(t, err)
		if secret != "" {
			q.Header.Set("Authorization", "Bearer "+secret)
		}
		a, err := http.DefaultClient.Do(q)
		must(t, err)
		defer a.Body.Close()
		b, err := io.ReadAll(a.Body)
		must(t, err)
		return a.StatusCode, string(b)
	}
	if code, text := get("/readyz", ""); code != 200 || text != `{"status":"ready"}` {
		t.Error(code, text)
	}
	get("/metrics", "mfs_wrong")
	_, text := get("/metrics", operator)
	for _, want := range []string{"moltis_ready 1", "moltis_questions_waiting 0", "moltis_tokens 1", "moltis_tokens_ending 1", "moltis_logins_refused_total 1",
		"moltis_store_checkpoints 1", "moltis_config_last_reload_successful 1", `moltis_build_info{version="`} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	for _, name := range []string{"moltis-fs.rules.yml", "moltis-fs.dashboard.json"} {
		file, err := os.ReadFile(filepath.Join("../../scripts/packaging", name))
		must(t, err)
		if strings.HasSuffix(name, "json") && !json.Valid(file) {
			t.Errorf("%s is no JSON", name)
		}
		for _, metric := range regexp.MustCompile(`\bmoltis_\w+`).FindAllString(string(file), -1) {
			if !strings.HasPrefix(metric, "moltis_fleet_") && /* TestFleetTokens has those */ !strings.Contains(text, "# TYPE "+strings.TrimSuffix(metric, "_bucket")+" ") {
				t.Errorf("%s asks for %s, which is not there", name, metric)
			}
		}
	}
	if out := s.askAs(operator, "tokens.list", `{}`); !strings.Contains(out, `"last_used":"`) {
		t.Error(out)
	}
	// what can't answer is named, until it answers again
	tokens := filepath.Join(data, "tokens", "tokens.json")
	must(t, os.Chmod(tokens, 0o644))
	testdir.Until(t, "not ready", func() bool {
		code, text := get("/readyz", "")
		return code == 503 && strings.Contains(text, `"failed":["tokens"]`)
	})
	must(t, os.Chmod(tokens, 0o600))
	testdir.Until(t, "ready again", func() bool { code, _ := get("/readyz", ""); return code == 200 })
	if line := s.says("not ready: tokens"); !strings.HasPrefix(line, `{"time":"`) || !strings.Contains(line, `"level":"INFO"`) {
		t.Error(line)
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Log("SKIPPED: promtool is not there; Debian has it in prometheus")
		return
	}
	lint := exec.Command(promtool, "check", "metrics")
	lint.Stdin = strings.NewReader(text)
	if out, err := lint.CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
	if out, err := exec.Command(promtool, "check", "rules", "../../scripts/packaging/moltis-fs.rules.yml").CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// Each line is one object, however it comes, and those of a logger stay as they are.
func TestJSONLines(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := &jsonLines{w: &b}
	for _, part := range []string{"moltis-fs: war", "ning: a \x1b[1m\"b\"\nhint: c\n", `{"level":"ERROR"}` + "\n", "{half\n", "rest"} {
		_, err := w.Write([]byte(part))
		must(t, err)
	}
	got := regexp.MustCompile(`"time":"[^"]+",`).ReplaceAllString(b.String(), "")
	if want := `{"level":"WARN","msg":"warning: a \u001b[1m\"b\""}` + "\n" + `{"level":"INFO","msg":"hint: c"}` + "\n" + `{"level":"ERROR"}` + "\n" + `{"level":"INFO","msg":"{half"}` + "\n"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
