package fleetbox

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Crash kills all processes of the server at once. None of them gets to write anything more. Start has it recover.
func (s *Server) Crash() error {
	pidfile, err := os.ReadFile(filepath.Join(s.dir, "data", "postmaster.pid"))
	if err != nil {
		return err
	}
	first, _, _ := bytes.Cut(pidfile, []byte("\n"))
	postmaster, err := strconv.Atoi(string(first))
	if err != nil {
		return err
	}
	if err := syscall.Kill(postmaster, syscall.SIGSTOP); err != nil {
		return err
	}
	err = turns(postmaster, "T", "Z", "") // from then on it starts no others, and those that end keep their numbers
	family := []int{postmaster}
	dirs, globbed := filepath.Glob("/proc/[0-9]*")
	err = errors.Join(err, globbed)
	for _, dir := range dirs {
		if _, parent := state(dir); parent == postmaster {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			family = append(family, pid)
		}
	}
	for _, pid := range family {
		err = errors.Join(err, syscall.Kill(pid, syscall.SIGKILL))
	}
	for _, pid := range family { // one that has its memory still keeps the next server from starting
		err = errors.Join(err, turns(pid, "Z", ""))
	}
	return err
}

// turns waits until a process has one of these letters of a state. "": it is gone.
func turns(pid int, letters ...string) error {
	for end := time.Now().Add(30 * time.Second); ; <-time.After(time.Millisecond) {
		letter, _ := state("/proc/" + strconv.Itoa(pid))
		if slices.Contains(letters, letter) {
			return nil
		}
		if time.Now().After(end) {
			return errors.New("a process of the server is " + letter + " still")
		}
	}
}

// state gives the letter of a process's state, and its parent. "": there is no such process.
func state(dir string) (letter string, parent int) {
	stat, err := os.ReadFile(dir + "/stat") // "12 (postgres) S 1 …"
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if err != nil || len(fields) < 2 {
		return "", 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return fields[0], parent
}
