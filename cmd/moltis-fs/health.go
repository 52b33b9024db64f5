package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"moltisfs/internal/approval/queue"
	"moltisfs/internal/audit"
	"moltisfs/internal/serve"
)

// A health looks at what calls depend on, for /readyz and for metrics: the store, the audit log, the queue and the tokens. It looks at
// most once in healthFor, however often it is asked.
type health struct {
	in     *invocation // of the server
	of     remote
	mu     sync.Mutex
	looked time.Time
	failed []string // what can't answer
	status *status  // nil: it can't be told
	oldest time.Time
	tokens []serve.Token
}

// healthFor is how long a look holds.
const healthFor = 2 * time.Second

// look looks, if the last look is too old, and names what can't answer. The caller has the lock.
func (h *health) look(ctx context.Context) {
	if time.Since(h.looked) < healthFor {
		return
	}
	h.failed, h.status, h.oldest, h.tokens = nil, nil, time.Time{}, nil
	in := h.in.sent(commandAt(commands(), "status"), h.of)
	check := func(name string, err error) {
		if err != nil {
			h.failed = append(h.failed, name)
			fmt.Fprintf(h.in.err, "%s: not ready: %s: %v\n", program, name, err)
		}
	}
	dir, err := in.dataDir()
	check("data_dir", err)
	var f *os.File
	if err == nil { // as the next record does, but for writing it
		f, err = os.OpenFile(filepath.Join(dir, "audit", audit.FileName), os.O_WRONLY|os.O_APPEND, 0)
		if errors.Is(err, fs.ErrNotExist) { // it was moved away, and the next record makes another
			_, err = os.ReadDir(filepath.Join(dir, "audit"))
		}
		check("audit", err)
	}
	if f != nil {
		_ = f.Close() // nothing was written
	}
	q, err := in.queue()
	var waiting []queue.Entry
	if err == nil {
		waiting, err = q.List(false)
	}
	if check("approvals", err); len(waiting) > 0 {
		h.oldest = waiting[0].Asked
	}
	s, err := in.tokens()
	if err == nil {
		h.tokens, err = s.List()
	}
	check("tokens", err)
	st, err := in.status(ctx)
	if check("store", err); err == nil {
		h.status = st
	}
	if err == nil && st.Fleet != nil && st.Fleet.Why != "" {
		check("fleet", errors.New(st.Fleet.Why))
	}
	h.looked = time.Now()
}

// ready names what can't answer, so that calls would be refused.
func (h *health) ready(ctx context.Context) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.look(ctx)
	return h.failed
}

// tokensEnd is how soon a token ends that is counted as about to.
const tokensEnd = 7 * 24 * time.Hour

// metrics gives the state of the server in the text format of Prometheus.
func (h *health) metrics(ctx context.Context) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.look(ctx)
	var b bytes.Buffer
	metric := func(kind, name, help string, value float64) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n%s %g\n", name, help, name, kind, name, value)
	}
	gauge := func(name, help string, value float64) { metric("gauge", name, help, value) }
	build, now := readBuild(), time.Now()
	fmt.Fprintf(&b, "# HELP moltis_build_info The program.\n# TYPE moltis_build_info gauge\nmoltis_build_info{version=%q,goversion=%q} 1\n", build.Version, build.Go)
	gauge("moltis_ready", "1 where the store, the audit log, the queue and the tokens answer.", truth(len(h.failed) == 0))
	served := h.of.served()
	gauge("moltis_config_last_reload_success_timestamp_seconds", "When the configuration that holds was read.", float64(served.Loaded.UnixMilli())/1000)
	gauge("moltis_config_last_reload_successful", "0 where the last reading of the configuration was not taken.", truth(served.ReloadError == ""))
	valid, ending := 0, 0
	for _, t := range h.tokens {
		if !t.Expired(now) {
			valid++
			if t.Expired(now.Add(tokensEnd)) {
				ending++
			}
		}
	}
	gauge("moltis_tokens", "Tokens that are valid.", float64(valid))
	gauge("moltis_tokens_ending", "Tokens that end within 7 days.", float64(ending))
	age := 0.
	if !h.oldest.IsZero() {
		age = now.Sub(h.oldest).Seconds()
	}
	gauge("moltis_questions_oldest_age_seconds", "How long the oldest question has waited for an answer; 0 where none waits.", age)
	if st := h.status; st != nil {
		gauge("moltis_questions_waiting", "Questions that wait for an answer.", float64(st.Waiting))
		gauge("moltis_audit_bytes", "Size of the audit log.", float64(st.AuditSize))
		gauge("moltis_audit_max_bytes", "The most that the audit log may take; 0: there is no limit.", float64(st.AuditMax))
		if st.Store != nil {
			gauge("moltis_store_bytes", "Size of the history.", float64(st.Store.UsedBytes))
			gauge("moltis_store_max_bytes", "The most that the history may take.", float64(st.Store.MaxBytes))
			gauge("moltis_store_checkpoints", "Changes in the history.", float64(st.Store.Checkpoints))
			gauge("moltis_trash_bytes", "Size of what lies in the trash as a whole.", float64(st.Store.ParkedBytes))
		}
		if f := st.Fleet; f != nil {
			beaten, behind := 0., 0.
			if !f.health.Beaten.IsZero() {
				beaten = now.Sub(f.health.Beaten).Seconds()
			}
			if f.Since != nil {
				behind = now.Sub(*f.Since).Seconds()
			}
			gauge("moltis_fleet_lease_seconds", "How long this gateway may still change things unless its lease is renewed; 0: it may not.", f.Lease)
			gauge("moltis_fleet_heartbeat_age_seconds", "Since the last heartbeat that the database has confirmed.", beaten)
			metric("counter", "moltis_fleet_heartbeats_failed_total", "Heartbeats that the database has not confirmed.", float64(f.health.Failed))
			metric("counter", "moltis_fleet_leases_total", "Leases that this gateway has had: more than one after it was fenced off.", float64(f.health.Begun))
			gauge("moltis_fleet_behind", "Changes that are on this machine only, with durable = local.", float64(f.Behind))
			gauge("moltis_fleet_behind_age_seconds", "Age of the oldest of them.", behind)
		}
	}
	return b.Bytes()
}

func truth(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// logger writes warnings and errors to standard error, in the form that --log-format says.
func (in *invocation) logger(level slog.Level) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if in.option("log-format") == "json" {
		return slog.New(slog.NewJSONHandler(in.err, o))
	}
	return slog.New(slog.NewTextHandler(in.err, o))
}

// jsonLines makes a JSON object of each line that is written to it: {"time", "level", "msg"}. Lines that are objects, of [slog], stay as
// they are.
type jsonLines struct {
	mu   sync.Mutex
	w    io.Writer
	rest []byte
}

func (j *jsonLines) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rest = append(j.rest, p...)
	for {
		line, rest, whole := bytes.Cut(j.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		out := append(bytes.Clone(line), '\n')
		if len(line) == 0 || line[0] != '{' || !json.Valid(line) {
			text, level := strings.TrimPrefix(string(line), program+": "), "INFO"
			if strings.HasPrefix(text, "warning: ") {
				level = "WARN"
			}
			var err error
			if out, err = encoded(struct {
				Time  time.Time `json:"time"`
				Level string    `json:"level"`
				Msg   string    `json:"msg"`
			}{time.Now(), level, text}, ""); err != nil {
				return 0, err
			}
		}
		if _, err := j.w.Write(out); err != nil {
			return 0, err
		}
		j.rest = bytes.Clone(rest)
	}
}
