package tools_test

import (
	"encoding/json"
	"strings"
	"testing"

	"moltisfs/tools"
)

// TestForeignArguments: other agents' names are taken where the meaning is certain; what is not is
// refused, all of it at once, with the call that was most likely meant, or with none.
func TestForeignArguments(t *testing.T) {
	t.Parallel()
	const edit = `{"file_path":"/a","new_string":"y","old_string":"x"}`
	for _, c := range []struct {
		tool, raw string
		taken     string // the arguments it runs with
		offered   string // where it is refused
		quiet     bool   // it is not worth a note
	}{
		// Names of other agents.
		{"Edit", `{"path":"/a","old_text":"x","new_text":"y"}`, edit, "", false},
		{"Edit", `{"filename":"/a","oldText":"x","newText":"y"}`, edit, "", false},
		{"Edit", `{"target_file":"/a","search":"x","replace":"y"}`, edit, "", false},
		{"Edit", `{"FILE_PATH":"/a","OLD_STRING":"x","NEW-STRING":"y"}`, edit, "", true},
		{"Edit", `{"absolute_path":"/a","find":"x","replacement":"y","instruction":"why"}`, edit, "", false},
		{"Edit", `{"command":"str_replace","path":"/a","old_str":"x","new_str":"y"}`, edit, "", false},
		{"Edit", `{"file_path":"/a","old_string":"x","new_string":"y","expected_replacements":1}`, edit, "", false},
		{"Edit", `{"file_path":"/a","edits":[{"oldText":"x","newText":"y"}]}`, edit, "", false},
		{"Edit", `{"input":{"file_path":"/a","old_string":"x","new_string":"y"}}`, edit, "", false},
		{"Edit", `"{\"file_path\":\"/a\",\"old_string\":\"x\",\"new_string\":\"y\"}"`, edit, "", false},
		{"Edit", `{"name":"edit","arguments":"{\"file_path\":\"/a\",\"old_string\":\"x\",\"new_string\":\"y\"}"}`, edit, "", false},
		{"Write", `{"path":"/a","file_text":"x"}`, `{"content":"x","file_path":"/a"}`, "", false},
		{"Write", `{"filename":"/a","contents":"x","overwrite":true,"explanation":"w"}`, `{"content":"x","file_path":"/a"}`, "", false},
		{"MultiEdit", `{"path":"/a","edits":[{"old_text":"x","new_text":"y"}],"dryRun":true}`,
			`{"dry_run":true,"edits":[{"new_string":"y","old_string":"x"}],"file_path":"/a"}`, "", false},
		{"MultiEdit", `{"edits":[{"file_path":"/a","old_string":"x","new_string":"y"}]}`,
			`{"edits":[{"new_string":"y","old_string":"x"}],"file_path":"/a"}`, "", true},
		{"MultiEdit", `{"file_path":"/a","edits":{"old_string":"x","new_string":"y"}}`,
			`{"edits":[{"new_string":"y","old_string":"x"}],"file_path":"/a"}`, "", false},
		{"Read", `{"path":"/a","start_line":10,"end_line":"20"}`, `{"file_path":"/a","limit":11,"offset":10}`, "", false},
		{"Read", `{"absolutePath":"/a","view_range":[5,-1]}`, `{"file_path":"/a","offset":5}`, "", false},
		{"Read", `{"file":"/a","lines":"5-9"}`, `{"file_path":"/a","limit":5,"offset":5}`, "", false},
		{"Read", `{"target_file":"/a","should_read_entire_file":true,"explanation":"w"}`, `{"file_path":"/a"}`, "", false},
		{"Read", `{"paths":["/a"]}`, `{"file_path":"/a"}`, "", false},
		{"Read", `{"file_path":"/a","tail":20}`, `{"file_path":"/a","limit":20,"tail":true}`, "", false},
		{"Read", `{"file_path":"/a","path":"/a"}`, `{"file_path":"/a"}`, "", false},
		{"Grep", `{"query":"x","include":"*.go","ignore_case":true,"directory":"/a","max_results":5}`,
			`{"-i":true,"glob":"*.go","head_limit":5,"path":"/a","pattern":"x"}`, "", false},
		{"Grep", `{"regex":"x","case_sensitive":false,"exclude":["a","b/**"]}`, `{"-i":true,"glob":"!a,!b/**","pattern":"x"}`, "", false},
		{"Grep", `{"pattern":"a.b","fixed_strings":true,"-l":true}`, `{"output_mode":"files_with_matches","pattern":"a\\.b"}`, "", false},
		{"Grep", `{"pattern":"x","context_lines":2,"output":"content","glob":["*.a","*.b"]}`,
			`{"-C":2,"glob":"*.a,*.b","output_mode":"content","pattern":"x"}`, "", false},
		{"Grep", `{"pattern":"x","i":true,"A":2}`, `{"-A":2,"-i":true,"pattern":"x"}`, "", true},
		{"Glob", `{"file_pattern":"*.go","cwd":"/a","case_sensitive":true}`, `{"path":"/a","pattern":"*.go"}`, "", false},
		{"Glob", `{"pattern":"*.py","case_sensitive":false}`, `{"pattern":"*.[pP][yY]"}`, "", false},
		{"NotebookEdit", `{"path":"/a","cell_id":1,"source":"x"}`, `{"cell_id":"1","new_source":"x","notebook_path":"/a"}`, "", false},

		{"Read", `{"file_path":"/a","limit":"30 lines"}`, "", `{"file_path":"/a","limit":30}`, false},
		{"Read", `{"file_path":"/a","limit":"all"}`, "", `{"file_path":"/a"}`, false},
		{"Grep", `{"pattern":"x","-i":"True"}`, `{"-i":true,"pattern":"x"}`, "", false},

		{"checkpoints_list", `{"path":"/a","max_results":5,"after":"2h","explanation":"w"}`, `{"file_path":"/a","limit":5,"since":"2h"}`, "", false},
		{"checkpoint_diff", `{"checkpoint_id":"abc","file_path":"/a"}`, `{"id":"abc","paths":["/a"]}`, "", false},
		{"checkpoint_restore", `{"checkpointId":"abc","files":["/a","/b"],"preview":true,"confirm":true}`, `{"dry_run":true,"id":"abc","paths":["/a","/b"]}`, "", false},
		{"checkpoint_restore", `{"ID":"undo","dryRun":"true"}`, `{"dry_run":true,"id":"undo"}`, "", true},

		// What is of no tool, or of all the items of a list.
		{"Grep", `{"pattern":"x","_path":"/secret","_working_dir":"/w"}`, `{"pattern":"x"}`, "", true},
		{"Edit", `{"filename":"/a","old_string":"x","new_string":"y","_old_string":"z"}`, edit, "", false},
		{"MultiEdit", `{"edits":"[{\"path\":\"/a\",\"oldText\":\"x\",\"new_string\":\"y\",\"dryRun\":true}]"}`,
			`{"dry_run":true,"edits":[{"new_string":"y","old_string":"x"}],"file_path":"/a"}`, "", false},
		{"MultiEdit", `{"file_path":"/a","edits":[{"file_path":"/b","old_string":"x","new_string":"y"}]}`, "", "", false},
		{"MultiEdit", `{"file_path":"/a","edits":[{"old_string":"x","new_string":"y","insert_line":3}]}`, "", "", false},
		{"MultiEdit", `{"file_path":"/a","edits":"[{\"old_string\":\"\\ud800\",\"new_string\":\"y\"}]"}`, "", "", false},
		{"Read", `"{\"file_path\":\"\\ud800\"}"`, "", "", false},
		{"Read", `{"arguments":"{\"file_path\":\"\\ud800\"}"}`, "", "", false},
		{"Read", `{"file_path":"/a","file_path":"/a"}`, "", "", false},
		{"Read", `{"path":"/a","limit":"many"}`, "", "", false},
		{"Read", `{"path":"/a","tail":1}`, "", `{"file_path":"/a","tail":true}`, false},
		{"Grep", `{"pattern":["a","b"]}`, "", "", false},
		{"Glob", `{"pattern":["*.a","*.b"],"exclude":"c","ignore_case":true}`, `{"pattern":"*.[aA],*.[bB],![cC]"}`, "", false},

		// What is not certain is not done, and offered only where nothing said gets lost.
		{"Edit", `{"file_path":"/a","old_strng":"x","new_string":"y"}`, "", edit, false},
		{"Edit", `{"file_path":"/a","old_string":"x","text":"y"}`, "", edit, false},
		{"Edit", `{"file_path":"/a","old_string":"x","new_string":null}`, "", "", false},
		{"Edit", `{"file_path":"/a","old_string":"x","new_string":"y","insert_line":3}`, "", "", false},
		{"Edit", `{"file_path":"/a","old_string":"x","new_string":"y","start_line":3,"bogus":1}`, "", "", false},
		{"Edit", `{"file_path":"/a","old_string":"x","new_string":"y","expected_replacements":3}`, "", "", false},
		{"Edit", `{"file_path":"/a","old_string":"x","new_string":"y","old_text":"z"}`, "", "", false},
		{"Edit", `{"command":"insert","path":"/a","old_str":"x","new_str":"y"}`, "", "", false},
		{"Edit", `{"name":"Write","arguments":{"file_path":"/a","old_string":"x","new_string":"y"}}`, "", "", false},
		{"Edit", `{"file_path":"/a","edits":[{"old_text":"x","new_text":"y"},{"old_string":"z","new_string":""}]}`, "",
			`MultiEdit{"edits":[{"new_string":"y","old_string":"x"},{"new_string":"","old_string":"z"}],"file_path":"/a"}`, false},
		{"MultiEdit", `{"file_path":"/a","old_string":"x","new_string":"y"}`, "", "Edit" + edit, false},
		{"Write", `{"file_path":"/a","content":"x","append":true}`, "", "", false},
		{"Write", `{"file_path":"/a","content":"x","mode":"a"}`, "", "", false},
		{"Write", `{"file_path":"/a","content":["x"]}`, "", "", false},
		{"NotebookEdit", `{"path":"/a","cell_number":1,"source":"x"}`, "", "", false},
		{"Read", `{"file_path":"/a","path":"/b"}`, "", "", false},
		{"Read", `{"paths":["/a","/b"]}`, "", "", false},
		{"Glob", `{}`, "", `{"pattern":"*"}`, false},
		{"Glob", `{"directory":"/a"}`, "", `{"path":"/a","pattern":"*"}`, false},
		{"checkpoint_restore", `{"version":"abc"}`, "", `{"id":"abc"}`, false},
		{"checkpoint_restore", `{"id":"abc","force":true}`, "", "", false},
		{"checkpoint_restore", `{"id":"abc","checkpoint":"def"}`, "", "", false},
		{"checkpoint_restore", `{"id":"abc","since":"2h"}`, "", "", false},
		{"Grep", `{"pattern":"x","head_limit":-1,"output_mode":"contents","bogus":1}`, "",
			`{"head_limit":0,"output_mode":"content","pattern":"x"}`, false},
		{"Grep", `{"patern":"x","foo":1,"glb":"*.go"}`, "", `{"glob":"*.go","pattern":"x"}`, false},
	} {
		taken, note, refused, offered := tools.Understand(c.tool, c.raw)
		if !sameJSON(taken, c.taken) || !sameJSON(offered, c.offered) || c.quiet != (taken != "" && note == "") {
			t.Errorf("%s %s:\ntaken %s (%s)\nrefused %s\noffered %s", c.tool, c.raw, taken, note, refused, offered)
		}
	}
}

func sameJSON(a, b string) bool {
	if a == "" || b == "" {
		return a == b
	}
	toolA, a, _ := strings.Cut(a, "{")
	toolB, b, _ := strings.Cut(b, "{")
	if toolA != toolB {
		return false
	}
	a, b = "{"+a, "{"+b
	var x, y map[string]any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	one, _ := json.Marshal(x)
	two, _ := json.Marshal(y)
	return string(one) == string(two)
}

// FuzzUnderstand: whatever the arguments, reading them ends, and what is ours stays as it was sent.
func FuzzUnderstand(f *testing.F) {
	for _, raw := range []string{`{"file_path":"/a","old_string":"","new_string":"y"}`, `{"edits":[1]}`, `{"input":{}}`, `""`,
		`{"view_range":[1,2],"end_line":3,"exclude":"{a"}`, `{"pattern":"[\\","case_sensitive":false,"word":true}`} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		for _, tool := range tools.All() {
			tools.Understand(tool.Name, raw)
		}
	})
}
