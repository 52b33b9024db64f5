package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"time"
)

// arm is a command that is measured.
type arm struct {
	name string
	args []string
	env  []string
	few  bool // half of the rounds will do
}

// sample is what one run took.
type sample struct{ wall, cpu float64 } // milliseconds

var rgFlags = []string{"--no-config", "--hidden", "--no-require-git", "--color=never"}

// limit is what one run may take. What takes longer is killed, and its row says so.
const limit = 20 * time.Second

// spawn runs an arm and says what it took. Exit code 1 is ripgrep's "no match".
func spawn(a arm, keep bool) (sample, []byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c := exec.CommandContext(ctx, a.args[0], a.args[1:]...)
	c.WaitDelay = time.Second
	c.Env = append(os.Environ(), a.env...)
	var out, errs bytes.Buffer
	c.Stderr = &errs
	if keep {
		c.Stdout = &out
	}
	begin := time.Now()
	err := c.Run()
	s := sample{wall: ms(time.Since(begin))}
	if c.ProcessState != nil {
		s.cpu = ms(c.ProcessState.UserTime() + c.ProcessState.SystemTime())
		if c.ProcessState.ExitCode() == 1 {
			err = nil
		}
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("%s did not end within %v", a.name, limit)
	} else if err != nil {
		err = fmt.Errorf("%s: %w: %s", a.name, err, bytes.TrimSpace(errs.Bytes()))
	}
	return s, out.Bytes(), err
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func median(x []float64) float64 {
	x = slices.Clone(x)
	slices.Sort(x)
	if len(x) == 0 {
		return math.NaN()
	}
	return (x[len(x)/2] + x[(len(x)-1)/2]) / 2
}

// series are the samples of each arm, round by round.
type series [][]sample

func (s series) median(arm int, of func(sample) float64) float64 {
	var x []float64
	for _, v := range s[arm] {
		x = append(x, of(v))
	}
	return median(x)
}

func wall(s sample) float64 { return s.wall }
func cpu(s sample) float64  { return s.cpu }

// ratio is the median over the rounds of arm to base.
func (s series) ratio(arm, base int, of func(sample) float64) float64 {
	var x []float64
	for i := range s[arm] {
		x = append(x, of(s[arm][i])/of(s[base][i]))
	}
	return median(x)
}

// best is the faster of the two ripgreps, which are the first two arms.
func (s series) best() int {
	if s.median(1, wall) < s.median(0, wall) {
		return 1
	}
	return 0
}

// measure interleaves the arms, which have all run before. An arm with few set runs in the first rounds only.
func (b *bench) measure(arms []arm) (series, error) {
	out := make(series, len(arms))
	for r := range b.rounds {
		for i := range arms {
			k := (i + r) % len(arms)
			if arms[k].few && r >= (b.rounds+1)/2 {
				continue
			}
			s, _, err := spawn(arms[k], false)
			if err != nil {
				return nil, err
			}
			out[k] = append(out[k], s)
		}
	}
	return out, nil
}
