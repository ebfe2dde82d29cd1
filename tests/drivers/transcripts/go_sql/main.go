// What users of database/sql do: lib/pq with its errors, arrays, COPY and listener, pgx's stdlib, sqlx, and GORM.
// Prints what it gets, to be compared with what it gets from PostgreSQL. Takes an address.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	_ "github.com/jackc/pgx/v4/stdlib"
	"github.com/jinzhu/gorm"
	_ "github.com/jinzhu/gorm/dialects/postgres"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

var ctx = context.Background()

func step(name string, body func() error) {
	fmt.Println("==", name)
	if err := body(); err != nil {
		fmt.Println("error:", say(err))
	}
}

func say(err error) string {
	var e *pq.Error
	if errors.As(err, &e) {
		return fmt.Sprintf("%s %s %s %s detail=%q hint=%q position=%q %s %s %s", e.Severity, e.Code, e.Code.Name(), e.Message, e.Detail, e.Hint, e.Position, e.Table, e.Column, e.Constraint)
	}
	if err == nil {
		return "none"
	}
	return err.Error()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func show(rows *sql.Rows, err error) {
	if err != nil {
		fmt.Println("error:", say(err))
		return
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	must(err)
	for _, t := range types {
		length, has := t.Length()
		precision, scale, decimal := t.DecimalSize()
		fmt.Print(t.Name(), " ", t.DatabaseTypeName(), " ", t.ScanType(), " ", length, has, precision, scale, decimal, "; ")
	}
	fmt.Println()
	for rows.Next() {
		values := make([]interface{}, len(types))
		for i := range values {
			values[i] = new(interface{})
		}
		must(rows.Scan(values...))
		for _, v := range values {
			switch it := (*v.(*interface{})).(type) {
			case []byte:
				fmt.Printf("bytes %q; ", it)
			case time.Time:
				fmt.Print(it.Format(time.RFC3339Nano), "; ")
			default:
				fmt.Printf("%T %v; ", it, it)
			}
		}
		fmt.Println()
	}
	fmt.Println(say(rows.Err()))
}

// Thing and Part are what GORM makes tables of.
type Thing struct {
	gorm.Model
	Name  string `gorm:"size:40;not null;unique_index"`
	Price float64
	Live  *bool `gorm:"default:true"`
	Tags  pq.StringArray `gorm:"type:text[]"`
	Parts []Part
}

// Part belongs to a Thing.
type Part struct {
	ID      uint `gorm:"primary_key"`
	ThingID uint `gorm:"index"`
	Label   string
}

func drive(driver string, db *sql.DB) {
	step(driver+": values", func() error {
		show(db.Query("SELECT $1::int, $2::text, $3::bool, $4::float8, $5::timestamptz, $6::bytea, $7::text", 5, "it's \u2603", true, 0.25, time.Date(2024, 2, 29, 1, 2, 3, 4000, time.UTC), []byte{0, 255}, nil))
		show(db.Query("SELECT 1::int2, 2::int8, 1.50::numeric(6,2), 'x'::varchar(9), 'y'::char(3), '2024-02-29'::date, '01:02:03'::time, '1 day'::interval, '{1,NULL}'::int[], '{\"a\": 1}'::jsonb, '9b2d0b8e-5d5c-4c3f-9a53-0a3b3a1b7c11'::uuid, 'x'::name, 1.5::float4, NULL"))
		return nil
	})
	step(driver+": a table, statements, transactions", func() error {
		_, err := db.Exec("CREATE TABLE row (id serial PRIMARY KEY, name text UNIQUE NOT NULL, n int CHECK (n > 0))")
		must(err)
		statement, err := db.Prepare("INSERT INTO row (name, n) VALUES ($1, $2) RETURNING id")
		must(err)
		for i := 1; i <= 3; i++ {
			var id int
			must(statement.QueryRow(fmt.Sprint("n", i), i).Scan(&id))
			fmt.Print(id, " ")
		}
		must(statement.Close())
		result, err := db.Exec("UPDATE row SET n = n + 1 WHERE id > $1", 1)
		must(err)
		fmt.Println(result.RowsAffected())
		tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable, ReadOnly: true})
		must(err)
		show(tx.Query("SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')"))
		_, err = tx.Exec("DELETE FROM row")
		fmt.Println(say(err), say(tx.Commit()))
		tx, err = db.Begin()
		must(err)
		_, err = tx.Exec("INSERT INTO row (name, n) VALUES ('n1', 1)")
		fmt.Println(say(err))
		_, err = tx.Exec("SELECT 1")
		fmt.Println(say(err), say(tx.Rollback()))
		for _, query := range []string{"INSERT INTO row (name, n) VALUES ('x', -1)", "INSERT INTO row (n) VALUES (1)", "SELECT nothing FROM row", "SELECT * FROM row WHERE id = 'a'", "SELEC", "SELECT 1/0"} {
			_, err = db.Exec(query)
			fmt.Println(say(err))
		}
		_, err = db.Exec("SELECT $1::int", "abc")
		fmt.Println(say(err))
		fmt.Println(say(db.QueryRow("SELECT id FROM row WHERE false").Scan(new(int))))
		show(db.Query("SELECT * FROM row ORDER BY id"))
		return nil
	})
	step(driver+": a context that ends", func() error {
		limited, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		_, err := db.ExecContext(limited, "SELECT pg_sleep(20)")
		fmt.Println(err != nil)
		show(db.Query("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active' AND datname = 'no such'"))
		_, err = db.Exec("DROP TABLE row")
		return err
	})
}

func main() {
	address := os.Args[1] + "?sslmode=disable&TimeZone=UTC&search_path=go_sql"
	db, err := sql.Open("postgres", address)
	must(err)
	_, err = db.Exec("DROP SCHEMA IF EXISTS go_sql CASCADE")
	must(err)
	_, err = db.Exec("CREATE SCHEMA go_sql")
	must(err)
	drive("lib/pq", db)
	binary, err := sql.Open("postgres", address+"&binary_parameters=yes")
	must(err)
	drive("lib/pq with binary parameters", binary)
	other, err := sql.Open("pgx", address)
	must(err)
	drive("pgx's stdlib", other)

	step("lib/pq: arrays, COPY, notifications, notices", func() error {
		var texts []string
		var numbers []int64
		var flags pq.BoolArray
		var null pq.NullTime
		fmt.Println(say(db.QueryRow("SELECT $1::text[], $2::bigint[], '{t,f}'::bool[], NULL::timestamptz", pq.Array([]string{"a", "b \"c\"", "NULL"}), pq.Array([]int64{1, 2})).Scan(pq.Array(&texts), pq.Array(&numbers), &flags, &null)))
		fmt.Printf("%q %v %v %v\n", texts, numbers, flags, null.Valid)
		_, err := db.Exec("CREATE TABLE copied (a int, b text, c bytea)")
		must(err)
		tx, err := db.Begin()
		must(err)
		statement, err := tx.Prepare(pq.CopyInSchema("go_sql", "copied", "a", "b", "c"))
		must(err)
		for i := 0; i < 1000; i++ {
			_, err = statement.Exec(i, fmt.Sprint("tab\t", i), []byte{byte(i), '\\'})
			must(err)
		}
		result, err := statement.Exec()
		must(err)
		fmt.Println(result.RowsAffected())
		must(statement.Close())
		must(tx.Commit())
		show(db.Query("SELECT count(*), sum(a), max(b), sum(length(c)) FROM copied"))
		tx, err = db.Begin()
		must(err)
		statement, err = tx.Prepare(pq.CopyIn("copied", "a"))
		must(err)
		_, err = statement.Exec("not a number")
		must(err)
		_, err = statement.Exec()
		fmt.Println(say(err), say(tx.Rollback()))
		listener := pq.NewListener(address, time.Second, time.Second, nil)
		must(listener.Listen("go_sql"))
		fmt.Println(say(listener.Ping()), say(listener.Listen("go_sql")))
		_, err = db.Exec("SELECT pg_notify('go_sql', 'hello')")
		must(err)
		select {
		case n := <-listener.Notify:
			fmt.Println(n.Channel, n.Extra)
		case <-time.After(5 * time.Second):
			fmt.Println("no notification")
		}
		must(listener.UnlistenAll())
		return listener.Close()
	})

	step("sqlx", func() error {
		x := sqlx.NewDb(db, "postgres")
		type row struct {
			A int
			B sql.NullString
		}
		var rows []row
		fmt.Println(say(x.Select(&rows, "SELECT a, b FROM copied WHERE a < $1 ORDER BY a", 2)), rows)
		named, err := x.NamedQuery("SELECT a, b FROM copied WHERE a = :a", map[string]interface{}{"a": 7})
		must(err)
		for named.Next() {
			var r row
			must(named.StructScan(&r))
			fmt.Println(r)
		}
		query, args, err := sqlx.In("SELECT count(*) FROM copied WHERE a IN (?)", []int{1, 2, 3})
		must(err)
		var n int
		fmt.Println(say(x.Get(&n, x.Rebind(query), args...)), n)
		_, err = x.NamedExec("INSERT INTO copied (a, b) VALUES (:a, :b)", []row{{A: -1}, {A: -2, B: sql.NullString{String: "x", Valid: true}}})
		fmt.Println(say(err))
		show(db.Query("SELECT a, b FROM copied WHERE a < 0 ORDER BY a"))
		return nil
	})

	step("GORM", func() error {
		g, err := gorm.Open("postgres", db)
		must(err)
		g.LogMode(false)
		must(g.AutoMigrate(&Thing{}, &Part{}).Error)
		must(g.AutoMigrate(&Thing{}, &Part{}).Error)
		must(g.Model(&Part{}).AddForeignKey("thing_id", "things(id)", "CASCADE", "RESTRICT").Error)
		fmt.Println(g.HasTable(&Thing{}), g.Dialect().HasColumn("things", "price"), g.Dialect().HasIndex("things", "uix_things_name"), g.Dialect().HasForeignKey("parts", "parts_thing_id_things_id_foreign"), g.Dialect().CurrentDatabase() != "")
		for i := 1; i <= 3; i++ {
			must(g.Create(&Thing{Name: fmt.Sprint("thing ", i), Price: float64(i) / 4, Tags: pq.StringArray{"a", "b c"}, Parts: []Part{{Label: "x"}, {Label: "y"}}}).Error)
		}
		fmt.Println(say(g.Create(&Thing{Name: "thing 1"}).Error))
		var things []Thing
		must(g.Preload("Parts").Where("price > ?", 0.3).Order("name desc").Limit(5).Offset(0).Find(&things).Error)
		for _, t := range things {
			fmt.Println(t.ID, t.Name, t.Price, *t.Live, t.Tags, len(t.Parts))
		}
		var count int
		g.Model(&Part{}).Joins("JOIN things ON things.id = parts.thing_id").Where("things.name LIKE ?", "thing%").Count(&count)
		fmt.Println(count, g.Model(&Thing{}).Where("price < ?", 0.6).Updates(map[string]interface{}{"price": gorm.Expr("price * ?", 2)}).RowsAffected)
		fmt.Println(g.Delete(&Thing{}, "name = ?", "thing 2").RowsAffected, say(g.First(&Thing{}, "name = ?", "thing 2").Error))
		fmt.Println(say(g.Unscoped().First(&Thing{}, "name = ?", "thing 2").Error))
		var found Thing
		fmt.Println(say(g.Where(Thing{Name: "found"}).Attrs(Thing{Price: 9}).FirstOrCreate(&found).Error), found.Price)
		fmt.Println(say(g.Transaction(func(tx *gorm.DB) error {
			must(tx.Create(&Thing{Name: "undone"}).Error)
			return errors.New("no")
		})))
		rows, err := g.Table("things").Select("date_trunc('day', created_at) IS NOT NULL AS day, sum(price) AS total").Group("1").Having("count(*) > ?", 1).Rows()
		show(rows, err)
		must(g.Model(&Thing{}).ModifyColumn("price", "numeric(10,3)").Error)
		must(g.Model(&Thing{}).DropColumn("tags").Error)
		must(g.Model(&Thing{}).RemoveIndex("uix_things_name").Error)
		show(db.Query("SELECT attname::text, format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid) FROM pg_attribute LEFT JOIN pg_attrdef ON attrelid = adrelid AND attnum = adnum WHERE attrelid = 'things'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"))
		return g.DropTable(&Part{}, &Thing{}).Error
	})

	step("the end", func() error {
		_, err := db.Exec("DROP SCHEMA go_sql CASCADE")
		return err
	})
}
