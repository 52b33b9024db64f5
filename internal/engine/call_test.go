package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"moltisfs/internal/audit"
	"moltisfs/internal/engine"
)

// Every way out of Do has one record, whose outcome is the dialect's word or ours.
func TestDoRecordsEveryWayOut(t *testing.T) {
	boom := errors.New("boom")
	refuse := func(context.Context, error) string { return "refused" }
	broken := func(context.Context, error) string { return "" }
	for _, c := range []struct {
		name    string
		call    engine.Call
		op      engine.Operation
		outcome string
		err     string // part of Do's error; "" when it has none
	}{
		{"done", engine.Call{}, engine.Operation{Run: func(context.Context) error { return nil }}, "ok", ""},
		{"refused", engine.Call{}, engine.Operation{Run: func(context.Context) error { return boom }, Refuse: refuse}, "refused", ""},
		{"not decoded", engine.Call{}, engine.Operation{Decode: func(json.RawMessage) (any, error) { return nil, boom }, Refuse: refuse}, "refused", ""},
		{"bad name", engine.Call{Session: strings.Repeat("s", engine.MaxName+1)}, engine.Operation{Refuse: refuse}, "refused", ""},
		{"host", engine.Call{}, engine.Operation{Run: func(context.Context) error { return boom }, Refuse: broken}, "host_error", "boom"},
		{"panic", engine.Call{}, engine.Operation{Run: func(context.Context) error { panic("at the disco") }, Refuse: refuse}, "host_error", "at the disco"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := grow(t, nil)
			c.call.Tool = "Probe"
			err := x.Do(t.Context(), &c.call, c.op)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("Do answers %v; want %q", err, c.err)
			}
			records := recorded(t, x)
			if len(records) != 1 || records[0].Outcome != c.outcome || records[0].Call == "" {
				t.Errorf("recorded %+v; want one record, %q", records, c.outcome)
			}
		})
	}
	x := grow(t, nil)
	x.Shut()
	if err := x.Do(t.Context(), &engine.Call{}, engine.Operation{}); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("after Shut: %v", err)
	}
}

// An operation ends in its time, and every one has such a time.
func TestTimeOfACall(t *testing.T) {
	x := grow(t, nil)
	free := engine.Operation{Run: func(ctx context.Context) error {
		if end, ok := ctx.Deadline(); !ok || time.Until(end) > time.Hour || time.Until(end) < time.Minute {
			t.Errorf("%v, a deadline at %s", ok, end)
		}
		return nil
	}}
	if err := x.Do(t.Context(), &engine.Call{Tool: "Probe"}, free); err != nil {
		t.Error(err)
	}
	late := engine.Operation{
		Time: time.Nanosecond, Run: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		Refuse: func(_ context.Context, err error) string { return err.Error() },
	}
	err := x.Do(t.Context(), &engine.Call{Tool: "Probe"}, late)
	if got := recorded(t, x)[1].Outcome; err != nil || got != context.DeadlineExceeded.Error() {
		t.Errorf("%v, %q", err, got)
	}
}

// recorded is the audit log of x.
func recorded(t *testing.T, x *tree) (out []audit.Record) {
	t.Helper()
	err := audit.Read(t.Context(), filepath.Join(x.data, "audit"), false, nil, func(line []byte) error {
		var e audit.Entry
		err := json.Unmarshal(line, &e)
		out = append(out, e.Record)
		for _, p := range e.Paths {
			out[len(out)-1].Paths = append(out[len(out)-1].Paths, string(p))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
