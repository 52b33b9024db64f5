package serve

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A session that nobody uses ends after an hour, and not before. Of one principal the one that was used longest ago ends where there would
// be too many. One in use ends with its last use, that of the run with the server, and each once.
func TestSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended []string
		s := Sessions[int]{Run: "run", Most: 3}
		s.End = func(principal, name string, forever bool) error {
			ended = append(ended, fmt.Sprint(principal, " ", name, " ", forever))
			return nil
		}
		use := func(principal, name string) (leave func()) {
			t.Helper()
			_, leave, err := s.Use(principal, name, name == "own")
			if err != nil {
				t.Fatal(err)
			}
			return leave
		}
		expect := func(want ...string) {
			t.Helper()
			if slices.Sort(ended); !slices.Equal(ended, want) {
				t.Errorf("ended are %q, want %q", ended, want)
			}
			ended = nil
		}
		use("ci", "run")()
		use("ci", "own")()
		leave := use("ci", "used")
		time.Sleep(SessionIdle)
		s.Sweep()
		expect()
		time.Sleep(time.Second)
		s.Sweep()
		expect("ci own true")
		leave()
		time.Sleep(time.Second)
		use("ci", "late")()
		use("other", "a")()
		use("ci", "one too many")()
		expect("ci used false")

		held := use("ci", "late")
		also := use("ci", "one too many")
		if _, _, err := s.Use("ci", "more", false); err != ErrAllInUse {
			t.Errorf("all are in use: %v", err)
		}
		one, leave := s.Find("ci", "late")
		if leave(); !s.EndOne(one) || s.EndOne(one) || one.Alive.Err() == nil {
			t.Error("it did not end once")
		}
		expect()
		if again, _ := s.Find("ci", "late"); again != nil {
			t.Error("it is found after its end")
		}
		held()
		<-one.Ended
		expect("ci late false")
		also()
		for _, one := range s.EndAll("run") {
			<-one.Ended
		}
		expect("ci one too many false", "ci run true", "other a false")
		if len(s.of) != 0 {
			t.Errorf("left are %v", s.of)
		}
	})
}
