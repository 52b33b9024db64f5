package datadir

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, name string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(name), 0o700))
	must(t, os.WriteFile(name, nil, 0o600))
}

// names has the mode of all that is below dir, dir included.
func names(t *testing.T, dir string) map[string]fs.FileMode {
	t.Helper()
	out := map[string]fs.FileMode{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			out[path] = info.Mode()
		}
		return err
	}))
	return out
}

// A directory of somebody else is refused and left as it is, mode and all; so is one in which others
// may write, and a new one is for us alone.
func TestTheDataDirIsOurs(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: no mode bits on this system")
	}
	for name, c := range map[string]struct {
		mode  fs.FileMode // 0: it is not there
		has   string      // a file in it
		why   string      // of the refusal; "" for none
		warns bool
	}{
		"new":                       {0, "", "", false},
		"empty":                     {0o700, "", "", false},
		"empty, others may look":    {0o755, "", "", true},
		"empty, the group may":      {0o775, "", "others may write", false},
		"empty, anybody may":        {0o777, "", "others may write", false},
		"/tmp":                      {0o777 | fs.ModeSticky, "theirs", "no data directory of moltis-fs", false},
		"a home":                    {0o755, ".profile", "no data directory of moltis-fs", false},
		"Moltis' own":               {0o755, "checkpoints/0a1b/manifest.json", "no data directory of moltis-fs", false},
		"ours":                      {0o700, marker, "", false},
		"ours, of before markers":   {0o700, "audit/audit.jsonl", "", false},
		"ours, with others' beside": {0o755, "checkpoints/checkpoints.db", "", true},
		"ours, anybody may":         {0o777, "locks/bytes", "others may write", false},
		"the marker is a directory": {0o700, marker + "/x", "no data directory of moltis-fs", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			if c.mode != 0 {
				must(t, os.Mkdir(dir, 0o700))
			}
			if c.has != "" {
				write(t, filepath.Join(dir, c.has))
			}
			if c.mode != 0 {
				must(t, os.Chmod(dir, c.mode))
			}
			before := names(t, filepath.Dir(dir))
			var log bytes.Buffer
			err := Take(dir, slog.New(slog.NewTextHandler(&log, nil)))
			var no *Error
			switch {
			case c.why == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.why != "" && (!errors.As(err, &no) || !strings.Contains(no.Error(), c.why) || no.Hint() == ""):
				t.Errorf("%v", err)
			}
			if strings.Contains(log.String(), "others may look") != c.warns {
				t.Errorf("warned: %q", log.String())
			}
			after := names(t, filepath.Dir(dir))
			if c.why != "" && !maps.Equal(before, after) {
				t.Errorf("it was changed: %v, then %v", before, after)
			}
			if c.mode == 0 {
				c.mode = 0o700
			}
			if got := after[dir]; got != fs.ModeDir|c.mode {
				t.Errorf("its mode is %v, not %v", got, c.mode)
			}
			if c.why == "" && !ours(dir) {
				t.Error("it is not marked as ours")
			}
		})
	}
}

// The name of a machine is made once, whoever comes first. One that was cut off while it was made was nobody's.
func TestMachine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if name, err := Machine(dir, false); name != "" || err != nil {
		t.Error(name, err)
	}
	for _, begun := range []string{"", "web-1-ABC"} {
		must(t, os.WriteFile(filepath.Join(dir, machineName), []byte(begun), 0o600))
		if name, err := Machine(dir, false); name != "" || err != nil {
			t.Error(name, err)
		}
		var all sync.Map
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				name, err := Machine(dir, true)
				if err != nil {
					t.Error(err)
				}
				all.Store(name, true)
			})
		}
		wg.Wait()
		name, err := Machine(dir, false)
		must(t, err)
		if n := len(maps.Collect(all.Range)); n != 1 || name == "" {
			t.Error(n, name)
		}
		if _, ok := all.Load(name); !ok {
			t.Error(name)
		}
		if again, err := Machine(t.TempDir(), true); again == name || err != nil {
			t.Error(again, err)
		}
	}
	must(t, os.WriteFile(filepath.Join(dir, machineName), []byte("elsewhere-1\n"), 0o600))
	if name, err := Machine(dir, true); name != "elsewhere-1" || err != nil {
		t.Error(name, err)
	}
}

// Nothing of a data directory may be another user's: an owner can write, also where we are root.
func TestNothingIsAnotherUsers(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: only root can give files away")
	}
	for name, why := range map[string]string{"": "it belongs", marker: "its " + marker, "audit": "its audit belongs", "audit/audit.jsonl": "its audit/audit.jsonl",
		"audit/audit.last": "its audit/audit.last", "audit-changes/audit.jsonl": "its audit-changes/audit.jsonl", "tokens": "its tokens", "tokens/tokens.json": "its tokens/tokens.json",
		"approvals": "its approvals", "locks": "its locks", "serve": "its serve", "notes": ""} {
		dir := filepath.Join(t.TempDir(), "data")
		for _, has := range []string{marker, "audit/audit.jsonl", "audit/audit.last", "audit-changes/audit.jsonl", "tokens/tokens.json", "approvals/x", "locks/x", "serve/x", "notes/x"} {
			write(t, filepath.Join(dir, has))
		}
		must(t, os.Chown(filepath.Join(dir, name), 65534, 65534))
		var no *Error
		err := Take(dir, slog.New(slog.DiscardHandler))
		if why == "" && err != nil || why != "" && (!errors.As(err, &no) || !strings.Contains(err.Error(), why) || !strings.Contains(no.Hint(), "chown")) {
			t.Errorf("%s of another user: %v", name, err)
		}
	}
}

// Nobody else may write the files of records: they could make them anew.
func TestRecordsAreOpenToNobody(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: no mode bits on this system")
	}
	for name, mode := range map[string]fs.FileMode{"audit": 0o777, "audit/audit.jsonl": 0o666, "audit/audit.last": 0o620, "audit-changes/audit.jsonl": 0o666, "locks/bytes": 0o666} {
		dir := filepath.Join(t.TempDir(), "data")
		write(t, filepath.Join(dir, marker))
		write(t, filepath.Join(dir, "audit/audit.jsonl"))
		write(t, filepath.Join(dir, "audit/audit.last"))
		write(t, filepath.Join(dir, "audit-changes/audit.jsonl"))
		write(t, filepath.Join(dir, "locks/bytes"))
		must(t, os.Chmod(filepath.Join(dir, name), mode))
		err := Take(dir, slog.New(slog.DiscardHandler))
		if record := strings.HasPrefix(name, "audit"); record != (err != nil) || record && !strings.Contains(err.Error(), "others may write to its "+name) {
			t.Errorf("%s as %v: %v", name, mode, err)
		}
	}
}

// A part of the data directory that leads elsewhere would be out of what is protected. The directory
// itself may be a link.
func TestPartsAreNoLinks(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"locks", "ledger", "audit", "checkpoints", "cache"} {
		dir := t.TempDir() + "/data"
		write(t, filepath.Join(dir, marker))
		must(t, os.Chmod(dir, 0o700))
		must(t, os.Symlink(t.TempDir(), filepath.Join(dir, part)))
		var no *Error
		if err := Take(dir, slog.Default()); !errors.As(err, &no) || !strings.Contains(err.Error(), "its "+part+" is a link") {
			t.Errorf("%s: %v", part, err)
		}
	}
	dir := t.TempDir()
	must(t, os.Mkdir(dir+"/far", 0o700))
	must(t, os.Symlink("far", dir+"/near"))
	if err := Take(dir+"/near", slog.Default()); err != nil || !ours(dir+"/far") {
		t.Errorf("a link to it: %v", err)
	}
}
