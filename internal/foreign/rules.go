package foreign

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A rule takes the argument that came as key.
type rule func(c *call, key string, v json.RawMessage)

// as takes an argument for ours of that name.
func as(name string) rule {
	return func(c *call, key string, v json.RawMessage) { c.put(name, key, v) }
}

// perhaps offers it as ours of that name, and does not take it.
func perhaps(name string) rule {
	return func(c *call, key string, v json.RawMessage) {
		if _, given := c.out[name]; given || c.own(name) == nil {
			c.unknown(key, v)
			return
		}
		c.refuse(fmt.Sprintf("there is no argument %q", key), "use "+name+" for "+key)
		c.out[name], c.from[name] = c.value(c.own(name), v), key
	}
}

// only leaves the argument out where its value says what the tool does anyway.
func only(hint string, values ...string) rule {
	return func(c *call, key string, v json.RawMessage) {
		is := fold(strings.Trim(string(v), `" `))
		if slices.Contains(values, is) {
			c.drop(key)
			return
		}
		c.refuse(fmt.Sprintf("there is no argument %q", key), hint)
		c.lost = c.lost || c.Changes
	}
}

// set is a switch that stands for a value of ours.
func set(name, to string) rule {
	return func(c *call, key string, v json.RawMessage) {
		yes, ok := asBool(v)
		switch {
		case !ok:
			c.unknown(key, v)
		case !yes:
			c.drop(key)
		default:
			c.put(name, key, json.RawMessage(to))
		}
	}
}

// not is a switch that is the opposite of ours.
func not(name string) rule {
	return func(c *call, key string, v json.RawMessage) {
		if yes, ok := asBool(v); ok {
			c.put(name, key, boolean(!yes))
			return
		}
		c.unknown(key, v)
	}
}

// mark is a switch that finish does something about when it has the value want.
func mark(want bool, do func(*call)) rule {
	return func(c *call, key string, v json.RawMessage) {
		yes, ok := asBool(v)
		switch {
		case !ok:
			c.unknown(key, v)
		case yes != want:
			c.drop(key)
		default:
			do(c)
			c.taken = append(c.taken, key+" in the pattern")
		}
	}
}

// either is one rule for a yes or no, and another for everything else.
func either(yesOrNo, other rule) rule {
	return func(c *call, key string, v json.RawMessage) {
		if _, is := asBool(v); is {
			yesOrNo(c, key, v)
			return
		}
		other(c, key, v)
	}
}

// table has the rules of one tool; the names are folded.
type table map[string]rule

func (t table) add(r rule, names string) table {
	for _, n := range strings.Fields(names) {
		t[n] = r
	}
	return t
}

// remarks are about the call, for people.
var remarks = strings.Fields("description explanation instruction instructions reason reasoning " +
	"thought thoughts thinking rationale justification purpose title summary intent comment note " +
	"toolcallid requestid callid requiresapproval")

const (
	fileNames = "path file filename filepath filepathname targetfile absolutepath absolutefilepath " +
		"fullpath fullfilepath pathname targetpath location filetoread filetoedit relativepath " +
		"relativeworkspacepath filelocation inputfile sourcefile uri fileuri document"
	manyNames = "paths files filepaths filenames"
	dirNames  = "directory dir folder dirpath directorypath folderpath root rootdir rootpath cwd " +
		"basepath basedir searchpath searchdir searchdirectory searchin targetdirectory targetdir " +
		"workdir workingdirectory location absolutepath fullpath filepath file directories " +
		"paths searchpaths startpath startdir relativeworkspacepath"
	globNames = "include includes includepattern includepatterns includeglob fileglob globpattern " +
		"globfilter filepattern filepatterns filenamepattern filefilter filemask globs glob " +
		"pathpattern filenameglob"
	notNames = "exclude excludes excludepattern excludepatterns excludeglob excludeglobs ignore " +
		"ignorepattern ignorepatterns ignoreglobs exclusions excludeddirs excludedirs"
	oldNames = "oldtext oldstr old oldcode oldcontent oldvalue oldsnippet oldblock search searchtext " +
		"searchstring searchblock searchfor searchcontent find findtext findstring target targettext " +
		"targetcontent targetstring original originaltext originalcode originalcontent " +
		"originalstring texttoreplace texttofind codetoreplace"
	newNames = "newtext newstr new newcode newcontent newvalue newsnippet newblock replace " +
		"replacetext replacestring replaceblock replacewith replacement replacementtext " +
		"replacementstring replacementcontent replacementcode updatedtext updatedcode with"
	allNames = "all global replaceallmatches replaceallinstances alloccurrences " +
		"replacealloccurrences allowmultiple allowmultiplereplacements allmatches replaceeverywhere"
	verbNames = "command action operation op"
	maxNames  = "maxresults maxmatches maxcount numresults resultlimit limit maxitems maxhits top " +
		"topk max"
	hiddenName = "hidden includehidden searchhidden showhidden dot"
)

// rulesOf are those of one tool. They take a name for what the tool that has it means by it.
func rulesOf(tool string) table {
	switch tool {
	case "Read":
		return table{}.add(as("file_path"), fileNames+" "+manyNames).
			add(as("offset"), "startline linestart fromline startlineoneindexed startlinenumber firstline "+
				"beginline line linenumber lineoffset start from begin").
			add(as("limit"), "linecount numlines numberoflines nlines maxlines linelimit head count "+
				"numlinestoread").
			add(lastLine, "endline lineend toline endlineoneindexed endlineoneindexedinclusive "+
				"endlinenumber lastline endlineinclusive stopline end to").
			add(lineRange, "viewrange linerange range lineranges").
			add(either(only("", "true", "false"), lineRange), "lines").
			add(as("pages"), "page pagerange pagenumbers pagenumber").
			add(only("Read shows the lines with numbers, from offset on, limit of them", "true", "false"),
				"shouldreadentirefile readentirefile entirefile readfull full whole linenumbers "+
					"showlinenumbers withlinenumbers includelinenumbers numbered addlinenumbers").
			add(only("leave it out", "view", "read", "open", "cat", "get"), verbNames)
	case "Write":
		return table{}.add(as("file_path"), fileNames).
			add(as("content"), "filetext contents text data body filecontent filecontents newcontent "+
				"newcontents fullcontent code source filebody filedata").
			add(only("Write replaces the whole file: to keep what is there, use Edit", "true"),
				"overwrite force replace allowoverwrite overwriteexisting").
			add(only("Write replaces the whole file: to add to it, use Edit", "false"), "append").
			add(only("Write replaces the whole file: to add to it, use Edit", "w", "overwrite", "create",
				"write", "rewrite", "replace", "wt"), "mode writemode").
			add(as("create_parents"), "createdirs createdirectories createparentdirs makeparents mkdir "+
				"mkdirs createdir createparentdirectories").
			add(only("leave it out", "create", "write", "overwrite", "save", "createfile", "writefile"),
				verbNames).
			add(func(c *call, key string, _ json.RawMessage) { c.drop(key) }, "linecount totallines")
	case "Edit":
		return edits().add(as("file_path"), fileNames).
			add(severalEdits, "edits changes replacements operations").
			add(only("leave it out", "strreplace", "replace", "edit", "update", "modify", "editfile",
				"replaceinfile"), verbNames)
	case "MultiEdit":
		return table{}.add(as("file_path"), fileNames).
			add(as("edits"), "changes replacements operations modifications editlist replacementchunks").
			add(oneEdit, oldNames+" "+newNames+" oldstring newstring replaceall").
			add(only("leave it out", "strreplace", "replace", "edit", "update", "multiedit"), verbNames)
	case "NotebookEdit":
		return table{}.add(as("notebook_path"), fileNames+" notebook notebookfile targetnotebook").
			add(as("cell_id"), "cell id").
			add(cellNumber, "cellindex cellnumber cellidx cellno index targetcell").
			add(as("new_source"), "source newcontent content newcode code newtext text newstring newstr "+
				"newcellsource cellsource newcellcontent").
			add(as("cell_type"), "type kind celllanguage").
			add(as("edit_mode"), "mode "+verbNames)
	case "Grep":
		return greps()
	case "Glob":
		return table{}.add(as("pattern"), "glob globpattern query filepattern filenamepattern name "+
			"filename namepattern searchpattern include includepattern includes search searchterm q match "+
			"filter patterns globs filequery searchquery").
			add(as("path"), dirNames).
			add(exclude, notNames).
			add(as("limit"), maxNames+" headlimit").
			add(as("offset"), "skip").
			add(mark(true, func(c *call) { c.anyCase = true }), "ignorecase caseinsensitive nocase icase").
			add(mark(false, func(c *call) { c.anyCase = true }), "casesensitive matchcase").
			add(only("** crosses directories, * does not", "true"), "recursive r").
			add(only("Glob lists files", "f", "file", "files"), "type kind filetype").
			add(only("Glob lists the newest first", "mtime", "modified", "time", "date", "newest"),
				"sort sortby orderby").
			add(only("hidden files are listed", "true"), hiddenName).
			add(only("ignored files are listed where their directory is given as path", "true"),
				"respectgitignore respectignore usegitignore gitignore respectgitignorefiles").
			add(only("ignored files are listed where their directory is given as path", "false"),
				"noignore includeignored nogitignore").
			add(only("leave it out", "glob", "find", "search", "list"), verbNames)
	}
	return checkpointRules(tool)
}

// checkpointRules are those of the tools for checkpoints.
func checkpointRules(tool string) table {
	switch tool {
	case "checkpoints_list":
		return checkpoints().add(as("limit"), maxNames+" n last").
			add(as("path_contains"), "contains query search filter pathfilter substring pattern").
			add(as("file_path"), fileNames).
			add(as("tool"), "toolname").
			add(as("session"), "sessionid").
			add(as("until"), "before untiltime endtime olderthan").
			add(as("cursor"), "nextcursor pagetoken nextpagetoken").
			add(only("leave it out", "list", "checkpointslist"), verbNames)
	case "checkpoint_diff":
		return checkpoints().add(as("id"), ids).
			add(as("paths"), fileNames+" filepaths files").
			add(as("against"), "compareto compare comparewith").
			add(only("leave it out", "diff", "show"), verbNames)
	case "checkpoint_restore":
		return checkpoints().add(as("id"), ids).
			add(as("paths"), fileNames+" filepaths files").
			add(as("dry_run"), "preview simulate").
			add(as("on_conflict"), "conflict conflicts conflictstrategy").
			add(as("keep_times"), "preservetimes keepmtime preservemtime").
			add(perhaps("id"), "to target version").
			add(only("with on_conflict: force, what others changed is overwritten", "false"),
				"force overwrite").
			add(only("leave it out", "true"), "confirm confirmed yes acknowledge").
			add(only("leave it out", "restore", "rollback", "revert"), verbNames)
	}
	return nil
}

const ids = "checkpointid checkpoint cp cpid snapshot snapshotid checkpointname"

// checkpoints are the rules of their points in time.
func checkpoints() table {
	return table{}.add(as("turn"), "turnid").
		add(as("since"), "after sincetime starttime newerthan").
		add(as("label"), "tag")
}

// edits are the rules of one replacement, alone or in a list.
func edits() table {
	return table{}.add(as("old_string"), oldNames).
		add(either(as("replace_all"), as("new_string")), newNames).
		add(perhaps("old_string"), "before from").
		add(perhaps("new_string"), "after to text content value updated insert").
		add(as("replace_all"), allNames).
		add(only("set replace_all to change every place", "1"), "expectedreplacements count "+
			"expectedoccurrences")
}

func greps() table {
	return table{}.
		add(either(mark(false, func(c *call) { c.literal = true }), as("pattern")), "regex regexp").
		add(as("pattern"), "query search searchterm searchtext searchpattern searchquery searchstring "+
			"searchregex text term keyword needle expression expr find q substring string "+
			"regexpattern grep").
		add(as("path"), dirNames+" filename targetfile filepaths").
		add(as("glob"), globNames).
		add(filesOrGlob, "files filefilter").
		add(exclude, notNames).
		add(as("type"), "filetype filetypes language lang").
		add(extension, "extension extensions fileextension fileextensions ext exts").
		add(as("-i"), "ignorecase caseinsensitive icase nocase").
		add(not("-i"), "casesensitive matchcase").
		add(as("-n"), "linenumbers showlinenumbers linenumber includelinenumbers withlinenumbers").
		add(as("-A"), "after aftercontext linesafter contextafter afterlines aftercontextlines").
		add(as("-B"), "before beforecontext linesbefore contextbefore beforelines beforecontextlines").
		add(as("-C"), "contextlines linesofcontext around numcontextlines surroundinglines contextsize").
		add(as("-o"), "onlymatching onlymatch").
		add(as("output_mode"), "output mode format resultmode outputformat outputtype returntype").
		add(set("output_mode", `"files_with_matches"`), "filesonly fileswithmatch listfiles "+
			"namesonly onlyfiles filenamesonly l").
		add(set("output_mode", `"count"`), "count countonly countmatches c").
		add(set("output_mode", `"content"`), "showcontent contentonly includecontent showlines "+
			"showmatches").
		add(as("multiline"), "multilinematch dotall dotmatchesnewline multilinemode U").
		add(as("head_limit"), maxNames+" head maxlines maxoutput").
		add(as("offset"), "skip").
		add(mark(true, func(c *call) { c.literal = true }), "fixedstrings fixedstring literal "+
			"isliteral plaintext F fixed").
		add(mark(false, func(c *call) { c.literal = true }), "isregex useregex isregexp regexmode").
		add(mark(true, func(c *call) { c.word = true }), "wholeword wholewords wordregexp word "+
			"matchwholeword w").
		add(only("give one file as path", "true"), "recursive r R").
		add(only("hidden files are searched", "true"), hiddenName).
		add(only("ignored files are searched where they are given as path", "true"),
			"respectgitignore respectignore usegitignore gitignore").
		add(only("ignored files are searched where they are given as path", "false"),
			"noignore includeignored").
		add(only("leave it out", "grep", "search", "rg", "find"), verbNames)
}
