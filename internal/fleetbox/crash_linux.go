package fleetbox

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
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
	if err := syscall.Kill(postmaster, syscall.SIGSTOP); err != nil { // from here on it starts no others
		return err
	}
	family := []int{postmaster}
	dirs, err := filepath.Glob("/proc/[0-9]*")
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
		for end := time.Now().Add(30 * time.Second); err == nil; <-time.After(time.Millisecond) {
			if letter, _ := state("/proc/" + strconv.Itoa(pid)); letter == "Z" || letter == "" {
				break
			}
			if time.Now().After(end) {
				err = errors.New("a killed server is there still")
			}
		}
	}
	return err
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
