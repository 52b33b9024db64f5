package engine_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// Whatever takes a Call refuses one that did not come by Do, or whose Do is over: what is not on record
// does not happen. A method that is new is in this test without a word.
func TestNoWayAroundTheRecord(t *testing.T) {
	e, err := engine.Open(config.Default(), engine.Host{DataDir: filepath.Join(t.TempDir(), "data")})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	records := map[string]bool{"Do": true, "Record": true, "BeginTurn": true, "Unknown": true} // they touch the log and the store only
	// These have no error, and nothing to tell.
	answers := map[string]string{"Near": "{ 0 []}", "Names": "[.]", "Denies": "true", "There": fmt.Sprint(guardfs.Object{}), "Holding": "[]", "Content": "[]", "SawAll": "false"}
	over := &engine.Call{Tool: "Probe"}
	op := engine.Operation{Run: func(context.Context) error { return nil }}
	if err := e.Do(t.Context(), over, op); err != nil {
		t.Fatal(err)
	}
	tried := 0
	for i := range reflect.TypeOf(e).NumMethod() {
		m := reflect.TypeOf(e).Method(i)
		at := -1
		for j := range m.Type.NumIn() {
			if m.Type.In(j) == reflect.TypeFor[*engine.Call]() {
				at = j
			}
		}
		if at < 0 || records[m.Name] {
			continue
		}
		for _, c := range []*engine.Call{{}, over} {
			in := []reflect.Value{reflect.ValueOf(e)}
			for j := 1; j < m.Type.NumIn(); j++ {
				switch {
				case j == at:
					in = append(in, reflect.ValueOf(c))
				case m.Type.In(j) == reflect.TypeFor[context.Context]():
					in = append(in, reflect.ValueOf(t.Context()))
				default:
					in = append(in, reflect.Zero(m.Type.In(j)))
				}
			}
			out := m.Func.Call(in)
			if want, quiet := answers[m.Name]; quiet {
				if got := fmt.Sprint(out[0].Interface()); got != want {
					t.Errorf("%s without Do answers %s", m.Name, got)
				}
				tried++
				continue
			}
			err, _ := out[len(out)-1].Interface().(error)
			if !errors.Is(err, engine.ErrHost) || !strings.Contains(err.Error(), "did not come by Engine.Do") {
				t.Errorf("%s without Do: %v", m.Name, err)
			}
			tried++
		}
	}
	if tried < 20 {
		t.Errorf("only %d methods were tried", tried)
	}
}

// A panic ends as a broken host, and is on record.
func TestPanicIsRecorded(t *testing.T) {
	for name, op := range map[string]engine.Operation{
		"run":    {Run: func(context.Context) error { panic("at the disco") }},
		"change": {Changes: true, Run: func(context.Context) error { panic("at the disco") }},
		"refuse": {Run: func(context.Context) error { return errors.New("no") }, Refuse: func(context.Context, error) string { panic("at the disco") }},
	} {
		t.Run(name, func(t *testing.T) {
			x := grow(t, nil)
			err := x.Do(t.Context(), &engine.Call{Tool: "Probe"}, op)
			r := recorded(t, x)
			if err == nil || len(r) != 1 || r[0].Outcome != "host_error" || !strings.Contains(r[0].Error, "at the disco") {
				t.Errorf("%v; on record: %+v", err, r)
			}
		})
	}
}
