module moltisfs

go 1.26
