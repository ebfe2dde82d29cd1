// What users of pgx do: values in both formats, pools, batches, COPY, LISTEN, cancellation by context, retries.
// Prints what it gets, to be compared with what it gets from PostgreSQL. Takes an address.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"sort"
	"sync"
	"time"

	"github.com/jackc/pgconn"
	"github.com/jackc/pgtype"
	"github.com/jackc/pgx/v4"
	"github.com/jackc/pgx/v4/pgxpool"
)

var ctx = context.Background()

func step(name string, body func() error) {
	fmt.Println("==", name)
	if err := body(); err != nil {
		fmt.Println("error:", say(err))
	}
}

var ports = regexp.MustCompile(`host=\S+|:\d{4,5}`)

func say(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return fmt.Sprintf("%s %s %s detail=%q hint=%q position=%d %s.%s.%s %s %s", pg.Severity, pg.Code, pg.Message, pg.Detail, pg.Hint, pg.Position, pg.SchemaName, pg.TableName, pg.ColumnName, pg.ConstraintName, pg.DataTypeName)
	}
	if err == nil {
		return "none"
	}
	return ports.ReplaceAllString(err.Error(), "_")
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func rows(conn interface {
	Query(context.Context, string, ...interface{}) (pgx.Rows, error)
}, sql string, args ...interface{}) {
	found, err := conn.Query(ctx, sql, args...)
	if err != nil {
		fmt.Println("error:", say(err))
		return
	}
	defer found.Close()
	for found.Next() {
		values, err := found.Values()
		if err != nil {
			fmt.Println("error:", say(err))
			return
		}
		for _, v := range values {
			if j, err := json.Marshal(v); err == nil {
				fmt.Printf("%T %s; ", v, j)
			} else {
				fmt.Printf("%T %v; ", v, v)
			}
		}
		fmt.Println()
	}
	fmt.Println(found.CommandTag(), say(found.Err()))
}

func exec(conn *pgx.Conn, sql string, args ...interface{}) {
	tag, err := conn.Exec(ctx, sql, args...)
	fmt.Println(tag, say(err))
}

func main() {
	conn, err := pgx.Connect(ctx, os.Args[1])
	must(err)
	_, err = conn.Exec(ctx, "DROP SCHEMA IF EXISTS go_pgx CASCADE; CREATE SCHEMA go_pgx; SET search_path = go_pgx; SET timezone = 'UTC'")
	must(err)

	values := []string{
		"1::int2", "2::int4", "3::int8", "'x'::text", "'v'::varchar", "'c'::char(3)", "true", "1.5::float4", "2.25::float8", "12.340::numeric", "'NaN'::numeric", "-0.00001::numeric", "123456789012345678901234567890::numeric",
		"'2024-02-29'::date", "'infinity'::date", "'2024-02-29 01:02:03.456789'::timestamp", "'2024-02-29 01:02:03+02'::timestamptz", "'infinity'::timestamptz", "'07:08:09.5'::time", "'1 year 2 mons 3 days 04:05:06'::interval", "'\\x00ff'::bytea",
		"'9b2d0b8e-5d5c-4c3f-9a53-0a3b3a1b7c11'::uuid", "'{\"a\": [1, null]}'::json", "'{\"a\": [1, null]}'::jsonb", "'10.0.0.1/24'::inet", "'10.0.0.0/8'::cidr", "'08:00:2b:01:02:03'::macaddr", "'101'::bit(3)", "'1011'::varbit", "5::oid", "'n'::name", "'q'::\"char\"",
		"'{1,NULL,3}'::int[]", "'{a,\"b c\",NULL}'::text[]", "'{{1,2},{3,4}}'::int8[]", "'{1.5,NULL}'::numeric[]", "'{2024-01-01}'::date[]", "'{t,f}'::bool[]", "'{}'::timestamptz[]", "'[1,5)'::int4range", "'(,5)'::int8range", "'empty'::numrange", "'[2024-01-01,2024-02-01)'::daterange", "'[2024-01-01,2024-02-01)'::tsrange", "'[2024-01-01,2024-02-01)'::tstzrange",
		"ROW(1, 'a', NULL)", "NULL", "'12.50'::money", "'{[1,3),[5,8)}'::int4multirange", "'a & b'::tsquery", "'fat rat'::tsvector", "'pg_class'::regclass", "'(0,1)'::tid",
	}
	step("values, in the format that pgx prefers, in text, and by the simple protocol", func() error {
		for _, v := range values {
			fmt.Println("--", v)
			rows(conn, "SELECT "+v)
			rows(conn, "SELECT "+v, pgx.QueryResultFormats{pgx.TextFormatCode})
			rows(conn, "SELECT "+v, pgx.QuerySimpleProtocol(true))
		}
		return nil
	})

	step("parameters", func() error {
		date := time.Date(2024, 2, 29, 1, 2, 3, 456789000, time.UTC)
		_, network, _ := net.ParseCIDR("10.0.0.0/8")
		var interval pgtype.Interval
		must(interval.Set(90 * time.Minute))
		for _, simple := range []bool{false, true} {
			rows(conn, "SELECT $1::int2, $2::int4, $3::int8, $4::text, $5::bool, $6::float8, $7::numeric, $8::timestamptz, $9::date, $10::bytea",
				pgx.QuerySimpleProtocol(simple), int16(1), 2, int64(3), "it's \\ \u2603", true, 0.1, "12.50", date, date, []byte{0, 255})
			rows(conn, "SELECT $1::jsonb, $2::text[], $3::int[], $4::inet, $5::uuid, $6::interval, $7::timestamp, $8::text",
				pgx.QuerySimpleProtocol(simple), map[string]interface{}{"a": []int{1}}, []string{"a", "b \"c\""}, []int32{1, 2}, network, [16]byte{1, 2, 3}, &interval, date, nil)
		}
		var n *int
		var s []string
		var m map[string]int
		err := conn.QueryRow(ctx, "SELECT NULL::int, ARRAY['x','y'], '{\"k\": 5}'::jsonb").Scan(&n, &s, &m)
		fmt.Println(n, s, m, say(err))
		fmt.Println(say(conn.QueryRow(ctx, "SELECT 'abc'::text").Scan(new(int))))
		fmt.Println(say(conn.QueryRow(ctx, "SELECT 1 WHERE false").Scan(new(int))))
		rows(conn, "SELECT $1::int", "abc")
		rows(conn, "SELECT $1", 5)
		rows(conn, "SELECT $1 + 1", 5)
		rows(conn, "SELECT $1 || 'x'", "y")
		rows(conn, "SELECT * FROM generate_series($1::int, $2)", 1, 3)
		return nil
	})

	step("a table", func() error {
		exec(conn, `CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TYPE pair AS (a int, b text); CREATE DOMAIN posint AS int CHECK (VALUE > 0)`)
		exec(conn, `CREATE TABLE thing (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE, m mood, p pair, n posint, moods mood[], price numeric(10,2), made timestamptz DEFAULT '2024-01-01 00:00+00', data jsonb, raw bytea)`)
		exec(conn, "INSERT INTO thing (name, m, n, price, data, raw) VALUES ($1, $2, $3, $4, $5, $6)", "one", "ok", 5, "1.25", map[string]int{"a": 1}, []byte("bytes"))
		exec(conn, "INSERT INTO thing (name, p, moods) VALUES ('two', ROW(1, 'x'), '{sad,ok}')")
		rows(conn, "SELECT * FROM thing ORDER BY id")
		rows(conn, "INSERT INTO thing (name) SELECT 'n' || g FROM generate_series(1, 3) g RETURNING id, name")
		exec(conn, "UPDATE thing SET price = coalesce(price, 0) + $1 WHERE id > $2", "1.5", 2)
		exec(conn, "DELETE FROM thing WHERE name = ANY($1)", []string{"n1", "n2"})
		exec(conn, "INSERT INTO thing (name) VALUES ('one') ON CONFLICT (name) DO UPDATE SET n = 7")
		rows(conn, "SELECT name, n, price FROM thing ORDER BY id")
		return nil
	})

	step("errors", func() error {
		exec(conn, "INSERT INTO thing (name) VALUES ('one')")
		exec(conn, "INSERT INTO thing (name) VALUES ($1)", nil)
		exec(conn, "INSERT INTO thing (id, name) VALUES (1, 'x')")
		exec(conn, "INSERT INTO thing (name, n) VALUES ('x', -1)")
		exec(conn, "INSERT INTO thing (name, m) VALUES ('x', 'angry')")
		exec(conn, "INSERT INTO thing (name, m) VALUES ('x', $1)", "angry")
		exec(conn, "INSERT INTO thing (name, price) VALUES ('x', $1)", "123456789.5")
		exec(conn, "SELECT * FROM nothing WHERE a = $1", 1)
		exec(conn, "SELECT nme FROM thing")
		exec(conn, "SELECT 1 FROM thing WHERE name = 5")
		exec(conn, "SELEC 1")
		exec(conn, "SELECT 1; SELECT 2", 1)
		exec(conn, "SELECT 1/0; SELECT 2")
		return nil
	})

	step("prepared statements and descriptions", func() error {
		d, err := conn.Prepare(ctx, "find", "SELECT id, name, price, m, p, data FROM thing WHERE name = $1 AND id > $2 AND m = $3")
		if err != nil {
			return err
		}
		kind := func(oid uint32) string {
			var name string
			must(conn.QueryRow(ctx, "SELECT format_type($1, NULL)", oid).Scan(&name))
			return name
		}
		for _, oid := range d.ParamOIDs {
			fmt.Print(kind(oid), " ")
		}
		for _, f := range d.Fields {
			fmt.Print(string(f.Name), " ", kind(f.DataTypeOID), " ", f.TableAttributeNumber, " ", f.DataTypeSize, " ", f.TypeModifier, "; ")
		}
		fmt.Println()
		rows(conn, "find", "one", 0, "ok")
		_, err = conn.Prepare(ctx, "broken", "SELECT nothing")
		fmt.Println(say(err))
		exec(conn, "ALTER TABLE thing ADD COLUMN late int DEFAULT 9")
		rows(conn, "find", "one", 0, "ok")
		rows(conn, "SELECT * FROM thing WHERE name = $1", "one")
		exec(conn, "ALTER TABLE thing DROP COLUMN late")
		rows(conn, "SELECT * FROM thing WHERE name = $1", "one")
		rows(conn, "SELECT * FROM thing WHERE name = $1", "one")
		fmt.Println(say(conn.Deallocate(ctx, "find")))
		rows(conn, "find", "one", 0, "ok")
		return nil
	})

	step("transactions", func() error {
		tx, err := conn.Begin(ctx)
		must(err)
		_, err = tx.Exec(ctx, "INSERT INTO thing (name) VALUES ('kept')")
		must(err)
		inner, err := tx.Begin(ctx)
		must(err)
		_, err = inner.Exec(ctx, "INSERT INTO thing (name) VALUES ('kept')")
		fmt.Println(say(err))
		_, err = inner.Exec(ctx, "SELECT 1")
		fmt.Println(say(err), string(conn.PgConn().TxStatus()))
		fmt.Println(say(inner.Rollback(ctx)), say(inner.Rollback(ctx)))
		fmt.Println(say(tx.Commit(ctx)), say(tx.Commit(ctx)), string(conn.PgConn().TxStatus()))
		err = conn.BeginTxFunc(ctx, pgx.TxOptions{IsoLevel: pgx.Serializable, AccessMode: pgx.ReadOnly, DeferrableMode: pgx.Deferrable}, func(tx pgx.Tx) error {
			rows(tx, "SELECT count(*), current_setting('transaction_isolation'), current_setting('transaction_read_only'), current_setting('transaction_deferrable') FROM thing")
			_, err := tx.Exec(ctx, "DELETE FROM thing")
			return err
		})
		fmt.Println(say(err))
		err = conn.BeginFunc(ctx, func(tx pgx.Tx) error {
			_, _ = tx.Exec(ctx, "SELECT 1/0")
			return nil
		})
		fmt.Println(say(err))
		return nil
	})

	step("batches", func() error {
		batch := &pgx.Batch{}
		batch.Queue("INSERT INTO thing (name) VALUES ($1) RETURNING name", "b1")
		batch.Queue("SELECT count(*) FROM thing WHERE name = $1", "b1")
		batch.Queue("UPDATE thing SET n = 3 WHERE name = 'b1'")
		batch.Queue("SELECT n FROM thing WHERE name = 'b1'")
		results := conn.SendBatch(ctx, batch)
		var name string
		var count, n int
		fmt.Println(say(results.QueryRow().Scan(&name)), name)
		fmt.Println(say(results.QueryRow().Scan(&count)), count)
		tag, err := results.Exec()
		fmt.Println(tag, say(err))
		fmt.Println(say(results.QueryRow().Scan(&n)), n, say(results.Close()))
		batch = &pgx.Batch{}
		batch.Queue("INSERT INTO thing (name) VALUES ('b2')")
		batch.Queue("INSERT INTO thing (name) VALUES ('b2')")
		batch.Queue("INSERT INTO thing (name) VALUES ('b3')")
		results = conn.SendBatch(ctx, batch)
		for i := 0; i < 3; i++ {
			tag, err = results.Exec()
			fmt.Println(tag, say(err))
		}
		fmt.Println(say(results.Close()))
		rows(conn, "SELECT name FROM thing WHERE name LIKE 'b%' ORDER BY 1")
		batch = &pgx.Batch{}
		for i := 0; i < 2000; i++ {
			batch.Queue("INSERT INTO thing (name) VALUES ($1)", fmt.Sprintf("many %d", i))
		}
		fmt.Println(say(conn.SendBatch(ctx, batch).Close()))
		rows(conn, "SELECT count(*) FROM thing WHERE name LIKE 'many%'")
		exec(conn, "DELETE FROM thing WHERE name LIKE 'many%'")
		return nil
	})

	step("COPY", func() error {
		exec(conn, "CREATE TABLE copied (id int, name text, price numeric, made timestamptz, data jsonb, tags text[], day date, ok bool, raw bytea, r float8)")
		source := pgx.CopyFromSlice(5000, func(i int) ([]interface{}, error) {
			var name interface{} = fmt.Sprintf("name %d", i)
			if i%7 == 0 {
				name = nil
			}
			at := time.Date(2024, 1, 1, 0, 0, i, 0, time.UTC)
			var price pgtype.Numeric
			must(price.Set(fmt.Sprintf("%d.%02d", i, i%100)))
			return []interface{}{i, name, &price, at, map[string]int{"i": i}, []string{"a", fmt.Sprint(i)}, at, i%2 == 0, []byte{byte(i)}, float64(i) / 3}, nil
		})
		n, err := conn.CopyFrom(ctx, pgx.Identifier{"copied"}, []string{"id", "name", "price", "made", "data", "tags", "day", "ok", "raw", "r"}, source)
		fmt.Println(n, say(err))
		rows(conn, "SELECT count(*), count(name), sum(price), max(made), sum((data->>'i')::int), max(tags[2]), count(*) FILTER (WHERE ok), round(sum(r)) FROM copied")
		rows(conn, "SELECT * FROM copied WHERE id IN (0, 4999) ORDER BY id")
		n, err = conn.CopyFrom(ctx, pgx.Identifier{"thing"}, []string{"name"}, pgx.CopyFromRows([][]interface{}{{"c1"}, {"c1"}}))
		fmt.Println(n, say(err))
		n, err = conn.CopyFrom(ctx, pgx.Identifier{"copied"}, []string{"nothing"}, pgx.CopyFromRows([][]interface{}{{1}}))
		fmt.Println(n, say(err))
		broken := pgx.CopyFromSlice(3, func(i int) ([]interface{}, error) {
			if i == 2 {
				return nil, errors.New("the source broke")
			}
			return []interface{}{i}, nil
		})
		n, err = conn.CopyFrom(ctx, pgx.Identifier{"copied"}, []string{"id"}, broken)
		fmt.Println(n, say(err))
		var out bytes.Buffer
		tag, err := conn.PgConn().CopyTo(ctx, &out, "COPY (SELECT id, name FROM copied WHERE id < 3 ORDER BY id) TO STDOUT CSV HEADER")
		fmt.Printf("%s %s %q\n", tag, say(err), out.String())
		tag, err = conn.PgConn().CopyFrom(ctx, bytes.NewBufferString("1,x\n2,\n"), "COPY copied (id, name) FROM STDIN CSV")
		fmt.Println(tag, say(err))
		tag, err = conn.PgConn().CopyFrom(ctx, bytes.NewBufferString("1,x,3\n"), "COPY copied (id, name) FROM STDIN CSV")
		fmt.Println(tag, say(err))
		rows(conn, "SELECT count(*) FROM copied")
		return nil
	})

	step("notifications and notices", func() error {
		config, err := pgx.ParseConfig(os.Args[1])
		must(err)
		config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { fmt.Println("notice", n.Severity, n.Code, n.Message) }
		other, err := pgx.ConnectConfig(ctx, config)
		must(err)
		defer other.Close(ctx)
		exec(other, "DROP TABLE IF EXISTS nowhere")
		exec(other, "DO $$ BEGIN RAISE NOTICE 'said %', 1; END $$")
		exec(other, "LISTEN go_channel")
		go func() {
			time.Sleep(50 * time.Millisecond)
			_, err := conn.Exec(ctx, "SELECT pg_notify('go_channel', 'payload')")
			must(err)
		}()
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		n, err := other.WaitForNotification(limited)
		if err != nil {
			return err
		}
		fmt.Println(n.Channel, n.Payload, n.PID == conn.PgConn().PID())
		short, stop := context.WithTimeout(ctx, 100*time.Millisecond)
		defer stop()
		_, err = other.WaitForNotification(short)
		fmt.Println(err != nil, other.IsClosed())
		return nil
	})

	step("a context that ends, a cancel, time-outs", func() error {
		other, err := pgx.Connect(ctx, os.Args[1])
		must(err)
		limited, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		_, err = other.Exec(limited, "SELECT pg_sleep(20)")
		fmt.Println(errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err), other.IsClosed())
		other, err = pgx.Connect(ctx, os.Args[1])
		must(err)
		defer other.Close(ctx)
		done := make(chan error)
		go func() {
			_, err := other.Exec(ctx, "SELECT pg_sleep(20)")
			done <- err
		}()
		time.Sleep(200 * time.Millisecond)
		fmt.Println(say(other.PgConn().CancelRequest(ctx)), say(<-done))
		exec(other, "SET statement_timeout = 50")
		exec(other, "SELECT pg_sleep(20)")
		exec(other, "SET statement_timeout = 0")
		exec(other, "SELECT pg_terminate_backend(pg_backend_pid())")
		fmt.Println(other.IsClosed())
		return nil
	})

	step("a pool, and serializable transactions that are tried again", func() error {
		config, err := pgxpool.ParseConfig(os.Args[1])
		must(err)
		config.MaxConns = 4
		config.ConnConfig.RuntimeParams["search_path"] = "go_pgx"
		config.ConnConfig.RuntimeParams["application_name"] = "go pool"
		pool, err := pgxpool.ConnectConfig(ctx, config)
		must(err)
		defer pool.Close()
		_, err = pool.Exec(ctx, "CREATE TABLE counter (id int PRIMARY KEY, n int); INSERT INTO counter VALUES (1, 0)")
		must(err)
		var wait sync.WaitGroup
		for w := 0; w < 4; w++ {
			wait.Add(1)
			go func() {
				defer wait.Done()
				for i := 0; i < 10; {
					err := pool.BeginTxFunc(ctx, pgx.TxOptions{IsoLevel: pgx.Serializable}, func(tx pgx.Tx) error {
						var n int
						if err := tx.QueryRow(ctx, "SELECT n FROM counter WHERE id = 1").Scan(&n); err != nil {
							return err
						}
						_, err := tx.Exec(ctx, "UPDATE counter SET n = $1 WHERE id = 1", n+1)
						return err
					})
					var pg *pgconn.PgError
					if err == nil {
						i++
					} else if !errors.As(err, &pg) || (pg.Code != "40001" && pg.Code != "40P01") {
						fmt.Println("unexpected", say(err))
						return
					}
				}
			}()
		}
		wait.Wait()
		rows(pool, "SELECT n FROM counter")
		rows(pool, "SELECT DISTINCT application_name FROM pg_stat_activity WHERE application_name LIKE 'go %'")
		return nil
	})

	step("pgconn: several results at once", func() error {
		all := conn.PgConn().Exec(ctx, "SELECT 1 AS a, 'x' AS b; INSERT INTO counter VALUES (2, 5); SELECT n FROM counter ORDER BY id; SELECT 1/0; SELECT 3")
		for all.NextResult() {
			reader := all.ResultReader()
			var names []string
			for _, f := range reader.FieldDescriptions() {
				names = append(names, string(f.Name))
			}
			for reader.NextRow() {
				fmt.Printf("%s ", reader.Values())
			}
			tag, err := reader.Close()
			fmt.Println(names, tag, say(err))
		}
		fmt.Println(say(all.Close()))
		parameters := []string{"server_version", "server_encoding", "client_encoding", "DateStyle", "TimeZone", "integer_datetimes", "standard_conforming_strings", "is_superuser", "IntervalStyle", "in_hot_standby", "default_transaction_read_only", "session_authorization"}
		sort.Strings(parameters)
		for _, p := range parameters[:len(parameters)-1] {
			if p != "server_version" && p != "TimeZone" {
				fmt.Println(p, conn.PgConn().ParameterStatus(p))
			}
		}
		return nil
	})

	step("the end", func() error {
		exec(conn, "DROP SCHEMA go_pgx CASCADE")
		return conn.Close(ctx)
	})
}
