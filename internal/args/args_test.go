package args

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

type sample struct {
	File  string   `json:"file_path" doc:"absolute path"`
	Mode  string   `json:"mode,omitempty" enum:"fast|slow"`
	Limit *int     `json:"limit,omitempty" min:"1" max:"9" default:"5"`
	All   bool     `json:"all,omitempty"`
	Edits []change `json:"edits,omitempty" max:"2"`
	One   *change  `json:"one,omitempty"`
}

type change struct {
	Old string `json:"old"`
}

var spec = Of[sample](&Names{Tool: "T", Aliases: []Alias{{Theirs: "path", Ours: "file_path", Quiet: true}}})

func TestDecode(t *testing.T) {
	three := 3
	for _, c := range []struct {
		raw  string
		want sample
		err  string // a part of what and hint; "" when it is taken
	}{
		{`{"file_path":"/a","limit":3}`, sample{File: "/a", Limit: &three}, ""},
		{`{"path":"/a","limit":"3","all":"true"}`, sample{File: "/a", Limit: &three, All: true}, ""},
		{`{"file_path":"/a","limit":null,"mode":""}`, sample{File: "/a"}, ""},
		{`{"file_path":"/a","edits":"[{\"old\":\"x\"}]"}`, sample{File: "/a", Edits: []change{{"x"}}}, ""},
		{`{"file_path":"/a","one":{"old":"x"}}`, sample{File: "/a", One: &change{"x"}}, ""},
		{`{"file_path":"/a","one":{}}`, sample{}, "missing: one.old"},
		{`{"file_path":"/a","one":{"odl":"x"}}`, sample{}, "use one.old"},
		{`{"file_path":"/a","one":3}`, sample{}, "3, not an object"},
		{``, sample{}, "missing: file_path"},
		{`[]`, sample{}, "an array, not an object"},
		{`{"input":{"file_path":"/a"}}`, sample{}, "send what is in input as the arguments themselves"},
		{`{"name":"T","arguments":{"file_path":"/a"}}`, sample{}, "what is in arguments"},
		{`{"input":" {\"file_path\":\"/a\"}"}`, sample{}, "what is in input"},
		{`{"path":"/a","inptu":"{\"mdoe\":1}"}`, sample{}, "no argument \"inptu\""},
		{`{"input":[1]}`, sample{}, "no argument \"input\""},
		{`{"_meta":{"file_path":"/a"}}`, sample{}, "missing: file_path"},
		{`{"file_path":"/a","FILE_PATH":"/b"}`, sample{}, "given twice"},
		{`{"file_path":"/a","path":"/b"}`, sample{}, "given twice"},
		{`{"file_path":"/a","limit":10}`, sample{}, "the most is 9"},
		{`{"file_path":"/a","limit":0}`, sample{}, "the least is 1"},
		{`{"file_path":"/a","mode":"fats"}`, sample{}, "use fast"},
		{`{"file_path":null}`, sample{}, "file_path is null"},
		{`{"file_path":"/a","edits":[{}]}`, sample{}, "missing: edits[0].old"},
		{`{"file_path":"\ud800"}`, sample{}, "surrogate"},
		{"{\"file_path\":\"\xff\"}", sample{}, "UTF-8"},
		{`{"file_path":"/a"} {}`, sample{}, "more after the object"},
		{strings.Repeat("[", 100), sample{}, "nested deeper"},
		{`{"file_path":`, sample{}, "end too early"},
	} {
		got, err := spec.Decode(json.RawMessage(c.raw))
		if c.err != "" {
			e, ok := err.(*Error)
			if !ok || !strings.Contains(e.What+"; "+e.Hint, c.err) {
				t.Errorf("%s: got %v, want an *Error with %q", c.raw, err, c.err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, &c.want) {
			t.Errorf("%s: got %+v, %v; want %+v", c.raw, got, err, &c.want)
		}
	}
}

func TestSchema(t *testing.T) {
	const want = `{"type":"object","properties":{"file_path":{"type":"string","description":"absolute path"},` +
		`"mode":{"type":"string","enum":["fast","slow"]},"limit":{"type":"integer","minimum":1,"maximum":9,"default":5},` +
		`"all":{"type":"boolean"},"edits":{"type":"array","maxItems":2,"items":{"type":"object","properties":{"old":{"type":"string"}},` +
		`"required":["old"],"additionalProperties":false}},"one":{"type":"object","properties":{"old":{"type":"string"}},"required":["old"],"additionalProperties":false}},"required":["file_path"],"additionalProperties":false}`
	if got := string(spec.Schema()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
