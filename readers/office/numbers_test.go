package office

import (
	"math"
	"strings"
	"testing"
)

// A number is shown as a spreadsheet program shows it.
func TestNumberFormats(t *testing.T) {
	for _, c := range []struct {
		code string
		f    float64
		want string
	}{
		{"0.0%", .256, "25.6%"}, {"0%", .5, "50%"}, {"00000", 7, "00007"}, {"#,##0", 1234567, "1,234,567"}, {"#,##0", 0, "0"}, {"#,##0.00", -1234.5, "-1,234.50"},
		{`#,##0.00 "EUR"`, 12.5, "12.50 EUR"}, {"#,##0.00 [$€-407]", 1234.5, "1,234.50 €"}, {`"$"#,##0.00_);[Red]("$"#,##0.00)`, -9.5, "($9.50)"},
		{"#,##0 €", 1e6, "1,000,000 €"}, {"0.00", 1.005, "1.01"}, {"0", 2.5, "3"}, {"0.0#", 1.25, "1.25"}, {"0.0##", 1.5, "1.5"}, {"#", 0, ""}, {".00", 12.345, "12.35"},
		{"#,##0,", 1234567, "1,235"}, {`0.0,,"M"`, 12345678, "12.3M"},
		{`_-* #,##0.00_-;-* #,##0.00_-;_-* "-"??_-`, 0, " - "}, {`0;-0;"none"`, 0, "none"}, {";;;", 3, ""}, {"-0", -3, "--3"}, {"0.00", -0.001, "0.00"},
		{"[h]:mm", 1.25, "30:00"}, {"[h]:mm:ss", 2.5 / 86400, "0:00:03"}, {"[mm]:ss", .1, "144:00"}, {"mm:ss.0", 90.5 / 86400, "01:30.5"}, {"h:mm AM/PM", .75, "6:00 PM"},
		{"h:mm AM/PM", 0, "12:00 AM"}, {"hh:mm", .25, "06:00"}, {"yyyy-mm-dd", 45356, "2024-03-05"}, {"dd.mm.yy", 45356, "05.03.24"}, {"d mmm yyyy", 45356, "5 Mar 2024"},
		{"mmmm", 45356, "March"}, {"dddd, ddd", 45356, "Tuesday, Tue"}, {"yyyy-mm-dd hh:mm:ss", 45356.5, "2024-03-05 12:00:00"}, {"[$-409]m/d/yyyy h:mm", 45356.5, "3/5/2024 12:00"},
		{"yyyy-mm-dd", -1, ""}, {"yyyy-mm-dd", 1e9, ""}, {"yyyy-mm-dd", math.NaN(), ""}, {"yyyy-mm-dd", 1, "1900-01-01"}, {`yyyy"-Q"`, 45356, "2024-Q"}, {"General\" kg\"", 2.5, "2.5 kg"}, {"[Blue]0.0", 2, "2.0"},
	} {
		if got := parseNumberFormat(c.code).show(c.f, false); got != c.want {
			t.Errorf("%v in %s is shown as %q, not %q", c.f, c.code, got, c.want)
		}
	}
	for _, asIs := range []string{"General", "@", "# ?/?", "0/16", "0.00E+00", "##0.0E+0", "000-0000", "e.m.d", "(000) 000-0000", `[>=1000]#,##0.0," k";0`, "[=1]0;0"} {
		if parseNumberFormat(asIs) != nil {
			t.Errorf("%s is a format", asIs)
		}
	}
	if got := general(.1 + .2); got != "0.3" {
		t.Errorf("general: %s", got)
	}
}

func FuzzNumberFormat(f *testing.F) {
	for _, s := range []string{`[>=1]#,##0.00_);[Red]"a"\b*-0%`, "[h]:mm:ss.000 AM/PM;@", "0.0E+0,%", "[", `"`, `\`, "_", "[$", "yyyyyyymmmmmmmm", ";;;;;", "[]", "General"} {
		f.Add(s, 45356.123)
	}
	f.Fuzz(func(t *testing.T, code string, n float64) {
		if format := parseNumberFormat(code); format != nil {
			if s := format.show(n, false); len(s) > 2000+50*len(code) {
				t.Errorf("%d bytes of %q", len(s), code)
			}
		}
		_ = strings.ToValidUTF8(code, "")
	})
}
