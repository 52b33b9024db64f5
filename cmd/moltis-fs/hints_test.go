package main

import (
	"slices"
	"strings"
	"testing"

	"moltisfs/internal/engine"
)

// sameForTools are the causes whose hint fits a command line too, or that no restore and no diff can meet.
var sameForTools = strings.Fields(`half_made bad_name bad_argument bad_path out_of_scope denied pseudo parent_missing file_too_large changed_at_once
	locked unsettled directory_not_empty unread part_unread modified not_expected_hash no_match not_unique unencodable damaged_bytes
	old_string_empty old_string_is_new no_change bad_encoding too_many_edits result_too_large not_a_notebook no_cell not_approved
	nobody_to_ask approval_timeout approval_stale checkpoint_not_saved not_shown bad_pattern bad_glob no_file_type store_disk_full
	store_gone store_busy store_read_only store_in_use sealed corrupt_content link_loop name_too_long disk_full system_error
	took_too_long no_answer too_many_calls cancelled unknown lines_unseen not_as_shown over_binary accident drops_unseen tier_blocked policies_failed hook_blocked hook_failed answer_withheld
	too_many_entries bad_window unwatchable
	too_many_watches runs_code into_itself unsaved_text buffer_differs_from_disk client_failed undecodable no_encoding count_differs`)

// What turns a model's hint to a person speaks of nobody else, and begins as a sentence does.
func TestHintsToAPerson(t *testing.T) {
	t.Parallel()
	for model, person := range map[string]string{
		"Ask the user to free space, then call again.":                        "Free space, then call again.",
		"Use another path, or ask the user.":                                  "Use another path.",
		"Do what the reason asks for, or tell the user; it is blocked again.": "Do what the reason asks for.",
		"Tell the user; the operator's log has the details.":                  "",
		"Restore another one.":                                                "Restore another one.",
	} {
		if got := toPerson(model); got != person {
			t.Errorf("%q becomes %q", model, got)
		}
	}
	for cause, say := range ofTheHost {
		in := &invocation{command: &command{name: "call", path: "call"}}
		if hints[cause] != nil || callHints[cause] != nil || say(in, nil) == "" {
			t.Errorf("%s has two hints, or none", cause.Name)
		}
	}
}

// Each cause has a hint in the words of the command line, or one that fits both. A hint of ours names no argument of a tool.
func TestEveryCauseHasASentence(t *testing.T) {
	in := &invocation{command: &command{path: "checkpoint restore"}}
	for _, c := range engine.Causes {
		if (hints[c] == nil) != slices.Contains(sameForTools, c.Name) {
			t.Errorf("%s/%s: a hint of its own %v, named as the same for the tools %v", c.Code, c.Name, hints[c] != nil, hints[c] == nil)
		}
		if hints[c] == nil {
			continue
		}
		text := hints[c](in, &engine.Refusal{Cause: c})
		for _, word := range []string{"checkpoints_list", "checkpoint_restore", "on_conflict", "in paths", "Glob"} {
			if strings.Contains(text, word) {
				t.Errorf("%s: %q", c.Name, text)
			}
		}
	}
}
