#!/bin/sh
# A Parquet file of 30 rows in two groups, by parquet-go, which is too large to be a dependency.
set -eu
mkdir -p "$1/parquet"
cd "$1/parquet"
cat >go.mod <<'T'
module parquet
go 1.26.0
T
cat >main.go <<'T'
package main
import ("os";"time";"github.com/parquet-go/parquet-go")
type In struct{ Street string `parquet:"street,optional"`; No int32 `parquet:"no"` }
type Row struct { ID int64 `parquet:"id"`; Name string `parquet:"name,optional,dict"`; F float64 `parquet:"f"`; When time.Time `parquet:"when,timestamp(microsecond)"`; Day int32 `parquet:"day,date"`; Ok bool `parquet:"ok"`; Tags []string `parquet:"tags"`; In In `parquet:"in"`}
func main(){ f,_:=os.Create(os.Args[1]); w:=parquet.NewGenericWriter[Row](f, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(16), parquet.CreatedBy("parquet-go","0.32.0",""))
 for i:=0;i<30;i++ { w.Write([]Row{{int64(i-5),[]string{"","Ada","Zoe"}[i%3],float64(i)/4,time.UnixMicro(1700000000000000+int64(i)*1e6),int32(20000+i),i%2==0,[]string{"a","b"},In{"s",int32(i)}}}) }
 if err:=w.Close(); err!=nil {panic(err)}; f.Close() }
T
go get github.com/parquet-go/parquet-go@v0.32.0
go run . "$2/binary/small.parquet"
