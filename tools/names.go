package tools

import "moltisfs/internal/args"

// The names that several tools share. What others call a path, a glob or a text is theirs to say; a
// name is taken for what the tool that has it means by it.
const (
	fileNames = "path file filename filepath filepathname targetfile absolutepath absolutefilepath " +
		"fullpath fullfilepath pathname targetpath location filetoread filetoedit relativepath " +
		"relativeworkspacepath filelocation inputfile sourcefile uri fileuri document"
	dirNames = "directory dir folder dirpath directorypath folderpath root rootdir rootpath cwd " +
		"basepath basedir searchpath searchdir searchdirectory searchin targetdirectory targetdir " +
		"workdir workingdirectory location absolutepath fullpath filepath file directories " +
		"paths searchpaths startpath startdir relativeworkspacepath"
	notNames = "exclude excludes excludepattern excludepatterns excludeglob excludeglobs ignore " +
		"ignorepattern ignorepatterns ignoreglobs exclusions excludeddirs excludedirs"
	oldNames = "oldtext oldstr old oldcode oldcontent oldvalue oldsnippet oldblock search searchtext " +
		"searchstring searchblock searchfor searchcontent find findtext findstring target targettext " +
		"targetcontent targetstring original originaltext originalcode originalcontent " +
		"originalstring texttoreplace texttofind codetoreplace"
	newNames = "newtext newstr new newcode newcontent newvalue newsnippet newblock replace " +
		"replacetext replacestring replaceblock replacewith replacement replacementtext " +
		"replacementstring replacementcontent replacementcode updatedtext updatedcode with"
	verbNames = "command action operation op"
	maxNames  = "maxresults maxmatches maxcount numresults resultlimit limit maxitems maxhits top " +
		"topk max"
	hiddenName = "hidden includehidden searchhidden showhidden dot"
	gitNames   = "respectgitignore respectignore usegitignore gitignore respectgitignorefiles"
	noGitNames = "noignore includeignored nogitignore"
	idNames    = "checkpointid checkpoint cp cpid snapshot snapshotid checkpointname"
)

// fileAliases are for the path of one file.
var fileAliases = []args.Alias{
	{Theirs: "path", Ours: "file_path", Quiet: true},
	{Theirs: fileNames, Ours: "file_path"},
}

// editAliases are for one replacement, alone or in a list.
var editAliases = []args.Alias{
	{Theirs: "oldstr", Ours: "old_string", Quiet: true},
	{Theirs: "newstr", Ours: "new_string", Quiet: true},
	{Theirs: oldNames, Ours: "old_string"},
	{Theirs: newNames, Ours: "replace_all", Turn: args.Switch},
	{Theirs: newNames, Ours: "new_string"},
	{Theirs: "before from", Ours: "old_string", Turn: args.Offered},
	{Theirs: "after to text content value updated insert", Ours: "new_string", Turn: args.Offered},
	{Theirs: "all global replaceallmatches replaceallinstances alloccurrences replacealloccurrences " +
		"allowmultiple allowmultiplereplacements allmatches replaceeverywhere", Ours: "replace_all"},
	{Theirs: "expectedreplacements count expectedoccurrences", Says: "1",
		Hint: "set replace_all to change every place"},
}

// timeAliases are for the points in time of checkpoints.
var timeAliases = []args.Alias{
	{Theirs: "turnid", Ours: "turn"},
	{Theirs: "after sincetime starttime newerthan", Ours: "since"},
	{Theirs: "tag", Ours: "label"},
}
