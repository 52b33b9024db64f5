package frequency

import (
	"math"
	"testing"
)

func TestChance(t *testing.T) {
	t.Parallel()
	all := Chance(func(byte) bool { return true })
	if all < 0.99 {
		t.Errorf("any byte stands at %v of all places", all)
	}
	sum := 0.0
	for b := range 256 {
		f := Of(byte(b))
		if sum += f; f <= 0 {
			t.Errorf("byte %#x never occurs: what needs it would cost nothing", b)
		}
		if one := Chance(func(x byte) bool { return x == byte(b) }); one != f {
			t.Errorf("byte %#x: %v alone, %v in a set", b, f, one)
		}
	}
	if math.Abs(sum-1) > 0.01 {
		t.Errorf("the shares come to %v", sum)
	}
	if Of('e') <= Of('q') || Of(' ') <= Of('~') {
		t.Error("what is common is taken for rare")
	}
}

func TestJoint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		chances []float64
		want    float64
	}{
		{nil, 1},
		{[]float64{0.25}, 0.25},
		{[]float64{0.01, 0.01}, 0.0008},
		{[]float64{0.01, 0.5}, 0.01}, // the rarest counts as it is, whatever the order
		{[]float64{0.5, 0.01}, 0.01},
	} {
		if got := Joint(c.chances); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v: %v, want %v", c.chances, got, c.want)
		}
	}
}
