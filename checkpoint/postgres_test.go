package checkpoint_test

import (
	"strings"
	"sync"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/checkpoint/blob"
	"moltisfs/checkpoint/checkpointtest"
	"moltisfs/internal/fleetbox"
)

// TestInPostgres runs these tests on stores in PostgreSQL and S3: see open.
func TestInPostgres(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T){
		"Conforms": func(t *testing.T) {
			checkpointtest.Store(t, func(t *testing.T) *checkpoint.DB { return open(t, t.TempDir(), checkpoint.Options{}) })
		},
		"GCKeepsWhatRetentionSays": TestGCKeepsWhatRetentionSays, "GCKeepsNone": TestGCKeepsNone, "GCKeepsBases": TestGCKeepsBases,
		"QuotaEvictsOldestFirst": TestQuotaEvictsOldestFirst, "FewLargeCheckpointsGoOneByOne": TestFewLargeCheckpointsGoOneByOne,
		"RandomWhileCleaning": TestRandomWhileCleaning, "Skips": TestSkips,
		"RewindPastWhatRetentionTook":                    TestRewindPastWhatRetentionTook,
		"NoChangeFromOutsideWhereRetentionTookTheNewest": TestNoChangeFromOutsideWhereRetentionTookTheNewest,
		"TurnsOfOneNameGo":                               TestTurnsOfOneNameGo, "Seen": TestSeen,
		"NothingTakesWhatIsOpen": TestNothingTakesWhatIsOpen, "SettledForEveryProcess": TestSettledForEveryProcess,
		"OpenRows": TestOpenRows, "WhatIsNeverOpen": TestWhatIsNeverOpen,
		"PurgeNeedsATarget": TestPurgeNeedsATarget, "PurgeBesideSaves": TestPurgeBesideSaves,
		"PurgeLeavesTheEmptyContent": TestPurgeLeavesTheEmptyContent, "PurgeOfWhatIsOpen": TestPurgeOfWhatIsOpen,
		"PurgedIsNotChangedOutside":       TestPurgedIsNotChangedOutside,
		"UndoOfARunPastWhatRetentionTook": TestUndoOfARunPastWhatRetentionTook, "UndoIsOfTheNewest": TestUndoIsOfTheNewest,
		"WhatAnUndoOfARunTakes": TestWhatAnUndoOfARunTakes,
		"SealedByAnother":       TestSealedByAnother, "SealedStaysSealed": TestSealedStaysSealed, "Encryption": TestEncryption,
		"LookingDoesNotWaitForAWriter": TestLookingDoesNotWaitForAWriter, "TamperedContentIsCorrupt": TestTamperedContentIsCorrupt,
		"Appended": TestAppended, "AppendedIsSkipped": TestAppendedIsSkipped, "Trash": TestTrash,
		"CopyAfterRetention": TestCopyAfterRetention, "CopyOfOneSession": TestCopyOfOneSession, "CopyWaitsForWhatIsOpen": TestCopyWaitsForWhatIsOpen,
		"CopyKeepsSealed": TestCopyKeepsSealed,
	} {
		t.Run(name, test)
	}
}

// fleetVar has a fleet, for the processes of a test.
const fleetVar = "MOLTISFS_CHECKPOINT_TEST_FLEET"

// fleets are the databases and contents, with a space between them, that tests below TestInPostgres have instead of a directory, by that.
var fleets sync.Map

// fleetOf gives the fleet that has the store which would be in dir, "" for none.
func fleetOf(t testing.TB, dir string) string {
	t.Helper()
	if !strings.HasPrefix(t.Name(), "TestInPostgres/") {
		return ""
	}
	f, ok := fleets.Load(dir)
	if !ok {
		f, _ = fleets.LoadOrStore(dir, fleetbox.Database(t)+" "+fleetbox.Contents(t, nil))
	}
	return f.(string)
}

// openAt opens the store of a fleet, or that in dir if there is none.
func openAt(dir, fleet string, o checkpoint.Options) (*checkpoint.DB, error) {
	if at := strings.Fields(fleet); len(at) == 2 {
		s, err := blob.OpenS3(at[1])
		if err != nil {
			return nil, err
		}
		o.Database, o.Blobs = at[0], s
	}
	return checkpoint.Open(dir, o)
}
