package config

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Duration is a time.Duration that is written as a string: "90s", "2m30s", "168h", or in whole days
// or weeks: "7d", "1w".
type Duration time.Duration

// maxDays is the longest Duration in days.
const maxDays = uint64(1<<63-1) / uint64(24*time.Hour)

var errTooLong = errors.New("longer than 292 years")

// UnmarshalText reads the forms above.
func (d *Duration) UnmarshalText(text []byte) error {
	s := string(text)
	for unit, days := range map[string]uint64{"d": 1, "w": 7} {
		number, ok := strings.CutSuffix(s, unit)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(number, 10, 64)
		switch {
		case errors.Is(err, strconv.ErrRange), err == nil && n > maxDays/days:
			return errTooLong
		case err == nil:
			*d = Duration(time.Duration(n*days) * 24 * time.Hour)
			return nil
		}
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return errors.New("not a duration")
	}
	*d = Duration(v)
	return nil
}

// MarshalText is String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String is the shortest usual form: "7d", "36h", "120s".
func (d Duration) String() string {
	v := time.Duration(d)
	switch day := 24 * time.Hour; {
	case v > 0 && v%day == 0:
		return strconv.FormatInt(int64(v/day), 10) + "d"
	case v > 0 && v%time.Hour == 0:
		return strconv.FormatInt(int64(v/time.Hour), 10) + "h"
	case v%time.Second == 0 && v < time.Hour:
		return strconv.FormatInt(int64(v/time.Second), 10) + "s"
	}
	return v.String()
}
