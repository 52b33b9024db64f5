package config

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Duration is a time.Duration that is written as a string: "90s", "2m30s", "168h", or whole days, "7d".
type Duration time.Duration

// UnmarshalText reads the forms above.
func (d *Duration) UnmarshalText(text []byte) error {
	s := string(text)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			*d = Duration(time.Duration(n) * 24 * time.Hour)
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
	case v > 0 && v%day == 0 && v/day < 1<<16:
		return strconv.FormatInt(int64(v/day), 10) + "d"
	case v > 0 && v%time.Hour == 0:
		return strconv.FormatInt(int64(v/time.Hour), 10) + "h"
	case v%time.Second == 0 && v < time.Hour:
		return strconv.FormatInt(int64(v/time.Second), 10) + "s"
	}
	return v.String()
}
