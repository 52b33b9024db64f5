package tools

import (
	"errors"
	"strings"
	"time"

	"moltisfs/config"
)

// zoned and local are the forms of a time besides an age, with fractions of a second or without:
// RFC 3339 and what people make of it.
var (
	zoned = []string{time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02 15:04:05Z07:00",
		"2006-01-02 15:04:05 Z07:00", "2006-01-02 15:04:05 Z0700"}
	local = []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04",
		"2006-01-02 15:04", time.DateOnly}
)

// howToSayWhen is a hint.
const howToSayWhen = "2026-11-21T10:00:00Z, in local time 2026-11-21 10:00 or 2026-11-21, or an " +
	"age like 2h or 7d"

// ParseTime reads a point in time as since and until have it. With a zone it is in that one;
// without, or a day alone, in that of now. An age says how long before now, written as a
// [config.Duration]. A local time that came twice or never, when the clocks changed, is refused.
func ParseTime(s string, now time.Time) (time.Time, error) {
	s = strings.TrimSpace(s)
	for _, form := range zoned {
		if t, err := time.Parse(form, s); err == nil {
			if t.IsZero() { // which elsewhere means that none is given
				t = t.Add(1)
			}
			return t, nil
		}
	}
	for _, form := range local {
		if wall, err := time.Parse(form, s); err == nil {
			return inZone(wall, now.Location())
		}
	}
	var age config.Duration
	if err := age.UnmarshalText([]byte(s)); err == nil && age >= 0 {
		return now.Add(-time.Duration(age)), nil
	}
	return time.Time{}, errors.New("neither a time nor an age")
}

// inZone is the moment at which the clocks of zone show what wall shows.
func inZone(wall time.Time, zone *time.Location) (t time.Time, err error) {
	n, last := 0, 1<<31
	// On both sides of a change of the clocks.
	for _, about := range []time.Duration{-36 * time.Hour, 36 * time.Hour} {
		_, offset := wall.Add(about).In(zone).Zone()
		at := wall.Add(-time.Duration(offset) * time.Second).In(zone)
		if _, shown := at.Zone(); shown == offset && offset != last {
			t, n, last = at, n+1, offset
		}
	}
	switch n {
	case 0:
		return t, errors.New("a time that the clocks here passed over: write it with its zone")
	case 1:
		return t, nil
	}
	return time.Time{}, errors.New("a time that the clocks here showed twice: write it with its zone")
}

// when reads an argument that is a point in time, or an age. It is zero where there is none.
func when(name string, s *string) (time.Time, error) {
	if s == nil || *s == "" {
		return time.Time{}, nil
	}
	t, err := ParseTime(*s, time.Now())
	if err != nil {
		return t, bad("send a time like "+howToSayWhen, "%s is %s, %v", name, quoteShort(*s), err)
	}
	return t, nil
}
