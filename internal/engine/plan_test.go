package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// step is a step in words: "put /f", "rename /a /b". Before a verb in capitals nothing or, of what goes, a file
// is there; "-dir", "-link" say what else.
func step(words string) Step {
	w := strings.Fields(words)
	s := Step{Action: Action(w[0]), Path: w[1]}
	before := ""
	for _, arg := range w[2:] {
		if kind, ok := strings.CutPrefix(arg, "-"); ok {
			before = kind
		} else {
			s.To = arg
		}
	}
	switch s.Action {
	case Put:
		s.After.Kind = checkpoint.File
	case Link:
		s.After.Kind = checkpoint.Symlink
	case Mkdir:
		s.After.Kind = checkpoint.Dir
	case Rmdir:
		s.Before.Kind = checkpoint.Dir
	default:
		s.Before.Kind = checkpoint.File
	}
	if before != "" {
		s.Before.Kind = checkpoint.Kind(before)
	}
	return s
}

func TestPlanCheck(t *testing.T) {
	trash := "/v/" + guardfs.TrashPrefix + "-0" + "/files/x"
	for plan, why := range map[string]string{
		"":                                    "",
		"put /f":                              "",
		"put /f -file":                        "",
		"put /f -symlink":                     "",
		"mkdir /d; mkdir /d/e; put /d/e/f":    "",
		"remove /d/f; rmdir /d; put /d":       "",
		"remove /f; mkdir /f; put /f/x":       "",
		"remove /f; mkdir /f; link /f/l":      "",
		"rename /d -dir " + trash:             "",
		"rename /d -dir":                      "",
		"rename /a /b; put /c":                "",
		"rename /d/x " + trash + "; rmdir /d": "",
		"mkdir /d; rename " + trash + " /d/x": "",
		"rmdir /d/e; rmdir /d; mkdir /d":      "",

		"put f":                           "not canonical",
		"put /a/../f":                     "not canonical",
		"put /f/":                         "not canonical",
		"put /f -dir":                     "does not go with a dir before",
		"mkdir /d -dir":                   "does not go with a dir before",
		"rmdir /d -file":                  "does not go with a file before",
		"remove /f -dir":                  "does not go with a dir before",
		"rename /f -absent /g":            "does not go with a absent before",
		"put /f; put /f":                  "leaves a file there",
		"put /f; link /f":                 "leaves a file there",
		"remove /f; remove /f":            "leaves a absent there",
		"mkdir /d; put /d":                "leaves a dir there",
		"put /f; put /f/x":                "leaves a file at /f",
		"put /f/x; put /f":                "leaves something in it",
		"link /l; put /l/x":               "leaves a symlink at /l",
		"remove /d/f; rmdir /d; put /d/f": "leaves a absent at /d",
		"rmdir /d; rmdir /d/e":            "leaves a absent at /d",
		"rename /d -dir /e; put /d/f":     "leaves a absent at /d",
		"mkdir /e; rename /d -dir /e":     "leaves a dir at /e",
		"rename /d -dir /d/e":             "into itself",
		"rename /d -dir /d":               "into itself",
		"put /f /g":                       "only a rename",
		"put /f; remove /g":               "too late",
		"put /f; mkdir /g":                "too late",
		"mkdir /d/x; rmdir /d":            "leaves something in it",
		"mkdir /d/x; mkdir /d":            "leaves something in it",
		"link /d/x; mkdir /e":             "too late",
	} {
		var p Plan
		for words := range strings.SplitSeq(plan, "; ") {
			if words != "" {
				p.Steps = append(p.Steps, step(words))
			}
		}
		err := p.check()
		if _, is := errors.AsType[*PlanError](err); why == "" && err != nil || why != "" && (!is || !strings.Contains(err.Error(), why)) {
			t.Errorf("%q: %v, should be %q", plan, err, why)
		}
	}
	dirs := Plan{Steps: []Step{step("rmdir /d"), step("put /d/x")}}
	dirs.Steps[0].Optional = true
	if err := dirs.check(); err == nil {
		t.Error("something goes into a directory that may be gone")
	}
}

// Whatever of a step is another, is another plan; and no field can pass for its neighbour.
func FuzzPlan(f *testing.F) {
	f.Add("/a", "/b", "c", "d", uint32(1))
	f.Add("", "1:/a", "4:file", "0:", uint32(0))
	f.Fuzz(func(t *testing.T, a, b, c, d string, n uint32) {
		base := func() Plan {
			return Plan{Steps: []Step{
				{Path: a, Action: Rename, To: b, Before: State{State: checkpoint.State{Hash: c, Target: d}}},
				{Path: b, Action: Put, After: State{State: checkpoint.State{Hash: d, Target: c, UID: n, Xattrs: map[string][]byte{a: []byte(b)}}}},
			}}
		}
		x := n + 1
		changes := []func(p *Plan){
			func(*Plan) {},
			func(p *Plan) { p.Steps[0].Path += "x" },
			func(p *Plan) { p.Steps[0].Path, p.Steps[0].To = p.Steps[0].Path+"x", p.Steps[0].To+"x" },
			func(p *Plan) { p.Steps[0].To += "x" },
			func(p *Plan) { p.Steps[0].Action = Remove },
			func(p *Plan) { p.Steps[0].Exact = true },
			func(p *Plan) { p.Steps[0].Optional = true },
			func(p *Plan) { p.Steps[0].Before.Kind = checkpoint.Dir },
			func(p *Plan) { p.Steps[0].Before.Hash += "x" },
			func(p *Plan) { p.Steps[0].Before.Target += "x" },
			func(p *Plan) { p.Steps[0].Before.ID.Ino++ },
			func(p *Plan) { p.Steps[1].After.Kind = checkpoint.Dir },
			func(p *Plan) { p.Steps[1].After.Hash += "x" },
			func(p *Plan) { p.Steps[1].After.Target += "x" },
			func(p *Plan) { p.Steps[1].After.Mode = 0o644 },
			func(p *Plan) { p.Steps[1].After.UID = x },
			func(p *Plan) { p.Steps[1].After.GID = x },
			func(p *Plan) { p.Steps[1].After.ModTime = time.Unix(int64(x), 1) },
			func(p *Plan) { p.Steps[1].After.Xattrs[a+"x"] = nil },
			func(p *Plan) { p.Steps[1].After.Xattrs[a] = []byte(b + "x") },
			func(p *Plan) { p.Steps = p.Steps[:1] },
			func(p *Plan) { p.Steps = p.Steps[1:] },
			func(p *Plan) { p.Steps = append(p.Steps, p.Steps[1]) },
			func(p *Plan) { p.Steps[0], p.Steps[1] = p.Steps[1], p.Steps[0] },
		}
		seen := map[string]int{}
		for i, change := range changes {
			p := base()
			change(&p)
			digest := p.Digest(&Call{Tool: "t"})
			if j, twice := seen[digest]; twice {
				t.Fatalf("changes %d and %d have one digest", i, j)
			}
			seen[digest] = i
		}
		p := base()
		for i, c := range []*Call{{Tool: a + "x"}, {Tool: a, Principal: "x"}, {Tool: a, Session: "x"}} {
			digest := p.Digest(c)
			if j, twice := seen[digest]; twice && a != "" {
				t.Fatalf("calls %d and %d have one digest", i, j)
			}
			seen[digest] = i
		}
	})
}

// What counts of what is there is its content: a touch, or another mode, makes no approval stale.
func TestDigestOfATouchedFile(t *testing.T) {
	p := Plan{Steps: []Step{step("put /f -file")}}
	was := p.Digest(&Call{})
	s := &p.Steps[0].Before
	s.ModTime, s.Mode, s.ID = time.Now(), 0o600, guardfs.Identity{Ino: 7}
	if p.Digest(&Call{}) != was {
		t.Error("a touched file is another plan")
	}
	if p.adds(&Plan{Steps: []Step{step("put /f -file"), step("put /g")}}) || !p.adds(&Plan{Steps: []Step{step("put /g")}}) {
		t.Error(fmt.Sprint("adds: ", p.Paths()))
	}
}
