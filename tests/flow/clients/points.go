// Writes and asks as programs with the Go client of InfluxDB 1.x do.
package main

import (
	"fmt"
	"os"
	"time"

	client "github.com/influxdata/influxdb1-client/v2"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	c, err := client.NewHTTPClient(client.HTTPConfig{Addr: os.Args[1], Username: "any", Password: "none"})
	check(err)
	_, _, err = c.Ping(time.Second)
	check(err)
	batch, err := client.NewBatchPoints(client.BatchPointsConfig{Database: "default", Precision: "ms"})
	check(err)
	for i := 0; i < 3; i++ {
		point, err := client.NewPoint("from_go", map[string]string{"device": "pi"}, map[string]interface{}{
			"v": 1.5 * float64(i), "n": i, "on": i == 1, "s": fmt.Sprint("row ", i)},
			time.Unix(1700000000, int64(i)*1e6))
		check(err)
		batch.AddPoint(point)
	}
	check(c.Write(batch))
	asked := client.NewQuery("SELECT v, n, \"on\", s FROM from_go; SHOW TAG VALUES FROM from_go WITH KEY = device", "default", "ms")
	answer, err := c.Query(asked)
	check(err)
	check(answer.Error())
	fmt.Println(answer.Results[0].Series[0].Values)
	fmt.Println(answer.Results[1].Series[0].Values)
	// Parameters with their types; an answer in chunks that the client puts together.
	asked = client.NewQueryWithParameters("SELECT sum(v) FROM from_go WHERE device = $d", "default", "ns",
		client.Params{"d": client.StringValue("pi")})
	asked.Chunked, asked.ChunkSize = true, 2
	answer, err = c.Query(asked)
	check(err)
	fmt.Println(answer.Results[0].Series[0].Values)
	asked = client.NewQueryWithParameters("SELECT $f FROM $m WHERE device =~ $re AND v > $least LIMIT $n", "default",
		"ms", client.Params{"f": client.Identifier("v"), "m": client.Identifier("from_go"),
			"re": client.RegexValue("^p"), "least": client.NumberValue(0.5), "n": client.IntegerValue(1)})
	answer, err = c.Query(asked)
	check(err)
	check(answer.Error())
	fmt.Println(answer.Results[0].Series[0].Values)
	chunks, err := c.QueryAsChunk(client.Query{
		Command: "SELECT n FROM from_go", Database: "default", Chunked: true, ChunkSize: 2})
	check(err)
	count := 0
	for ; ; count++ {
		next, err := chunks.NextResponse()
		if err != nil {
			break
		}
		check(next.Error())
	}
	fmt.Println(count, "chunks")
	answer, err = c.Query(client.NewQuery("SELECT", "default", ""))
	check(err)
	fmt.Println(answer.Error())
}
