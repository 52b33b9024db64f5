package checkpoint_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A recording is everything that a process did to the files of a store, in order, as strace saw it.
type recording []event

type event struct {
	pid   string
	call  string // write, truncate, sync, failed (a sync), create, mkdir, remove, say
	path  string // below the store; "." is the store itself
	off   int64
	data  []byte
	begun int // the number of the line where it began: a sync covers what had ended before
	ended int
}

// splitCall takes "PID name(args) = result…" apart. Lines have megabytes: no regular expressions.
func splitCall(line string) (pid, call, args, result string, ok bool) {
	pid, rest, ok1 := strings.Cut(line, " ")
	call, rest, ok2 := strings.Cut(strings.TrimLeft(rest, " "), "(")
	args, result, ok3 := strings.Cut(rest, " = ") // texts are in hex
	args, ok4 := strings.CutSuffix(strings.TrimRight(args, " "), ")")
	return pid, call, args, result, ok1 && ok2 && ok3 && ok4
}

// unhex decodes \x2f\x74… ; other text stays as it is.
func unhex(s string) string {
	if !strings.HasPrefix(s, `\x`) || len(s)%4 != 0 {
		return s
	}
	digits := make([]byte, 0, len(s)/2)
	for i := 0; i < len(s); i += 4 {
		digits = append(digits, s[i+2], s[i+3])
	}
	n, err := hex.Decode(digits, digits)
	if err != nil {
		return s
	}
	return string(digits[:n])
}

// quoted returns the strings among args.
func quoted(args string) (out []string) {
	for parts := strings.Split(args, `"`); len(parts) > 2; parts = parts[2:] {
		out = append(out, unhex(parts[1]))
	}
	return out
}

// record runs a child on dir and returns what it did below it; dir is gone then. inject, if not empty, makes strace fail calls; hit says whether it did.
func record(t *testing.T, name string, seed int64, dir, inject string) (out recording, hit bool) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("SKIPPED: strace is not here to record with")
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	tamper := []string{}
	if inject != "" {
		tamper = []string{"-e", "inject=" + inject}
	}
	cmd := exec.Command(strace, append(tamper, "-f", "-qq", "-y", "-xx", "-s", "100000000", "-o", log, "-e", "signal=none",
		"-e", "trace=open,openat,creat,write,pwrite64,fsync,fdatasync,ftruncate,mkdir,mkdirat,unlink,unlinkat,rename,renameat,renameat2,fallocate,copy_file_range",
		os.Args[0], "-test.run=^$")...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %q", roleVar, name, seed, dir))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil && inject == "" {
		if strings.Contains(stderr.String(), "PTRACE") || strings.Contains(stderr.String(), "ptrace") {
			t.Skip("SKIPPED: strace may not trace here: ", stderr.String())
		}
		t.Fatal(err, stderr.String())
	}
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// A record takes some 40 MB, most of it the log that is made long beforehand, and a soak makes a thousand.
	if err := errors.Join(os.Remove(log), os.RemoveAll(dir)); err != nil {
		t.Fatal(err)
	}
	type half struct {
		text string
		line int
	}
	begun := map[string]half{}
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 64<<20)
	for n := 1; sc.Scan(); n++ {
		line, first := sc.Text(), n
		if head, ok := strings.CutSuffix(line, " <unfinished ...>"); ok {
			pid, head, _ := strings.Cut(head, " ")
			begun[pid] = half{head, n}
			continue
		}
		if pid, tail, _ := strings.Cut(line, " "); strings.HasPrefix(strings.TrimLeft(tail, " "), "<... ") {
			_, tail, _ = strings.Cut(tail, " resumed>")
			line, first = pid+" "+begun[pid].text+tail, begun[pid].line
		}
		pid, call, args, result, ok := splitCall(line)
		if !ok {
			if !strings.Contains(line, "exited with") && !strings.Contains(line, "killed by") && !strings.Contains(line, "<detached") {
				t.Fatalf("strace said what this test cannot read: %.200s", line)
			}
			continue
		}
		hit = hit || strings.HasSuffix(result, "(INJECTED)")
		failed := strings.HasPrefix(result, "-")
		if failed && call != "fsync" && call != "fdatasync" {
			continue
		}
		e, ok := readEvent(t, dir, call, args)
		if !ok {
			continue
		}
		if failed {
			e.call = "failed"
		}
		e.pid, e.begun, e.ended = pid, first, n
		out = append(out, e)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return out, hit
}

// readEvent understands one call; false: it is about something else.
func readEvent(t *testing.T, dir, call, args string) (e event, ok bool) {
	t.Helper()
	texts := quoted(args)
	below := func(p string) (string, bool) {
		r, err := filepath.Rel(dir, p)
		return r, err == nil && r != ".." && !strings.HasPrefix(r, "../") && !strings.HasSuffix(r, "-shm")
	}
	rest := strings.Split(args, ", ")
	fd, name, isFD := strings.Cut(rest[0], "<")
	if isFD = isFD && fd != "AT_FDCWD"; isFD {
		name, _, _ = strings.Cut(name, ">")
		e.path, ok = below(unhex(name))
	}
	number := func(i int) int64 {
		n, err := strconv.ParseInt(rest[i], 10, 64)
		if err != nil {
			t.Fatalf("%s(%.200s): %v", call, args, err)
		}
		return n
	}
	switch call {
	case "write":
		if isFD && fd == "1" {
			return event{call: "say", data: []byte(texts[0])}, true
		}
		e.call, e.off = "write", -1
	case "pwrite64":
		e.call, e.off = "write", number(len(rest)-1)
	case "ftruncate":
		e.call, e.off = "truncate", number(1)
	case "fsync", "fdatasync":
		e.call = "sync"
	case "open", "openat", "creat":
		e.path, ok = below(texts[0])
		if ok && !strings.Contains(args, "O_CREAT") && call != "creat" {
			return e, false
		}
		e.call = "create" // or open, if it is there
	case "mkdir", "mkdirat":
		e.path, ok = below(texts[0])
		e.call = "mkdir"
	case "unlink", "unlinkat":
		e.path, ok = below(texts[0])
		e.call = "remove"
	default:
		if !isFD {
			e.path, ok = below(texts[0])
		}
		if ok {
			t.Fatalf("the store uses %s, which this test does not model", call)
		}
		return e, false
	}
	if e.call == "write" && ok {
		if len(texts) == 0 {
			t.Fatalf("%s(%.300s … %s): no data", call, args, args[max(0, len(args)-300):])
		}
		e.data = []byte(texts[0])
	}
	return e, ok
}
