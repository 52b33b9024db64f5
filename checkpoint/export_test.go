package checkpoint

var LogWait = &logWait
