# Ruby's pg and Sequel. Prints what it gets, to be compared with what it gets from PostgreSQL. Takes an address.
require "bigdecimal"
require "date"
require "pg"
require "sequel"

$stdout.sync = true
URL = ARGV[0]

def show(*values) = puts(values.map { |v| v.is_a?(BigDecimal) ? v.to_s("F") : v.inspect }.join(" | "))

def step(name)
  puts "== #{name}"
  yield
rescue StandardError => e
  puts "#{e.class}: #{e.message}"
end

def attempt
  show(yield)
rescue PG::Error, Sequel::Error => e
  puts "#{e.class}: #{e.message}"
end

pg = PG.connect(URL)
pg.exec("SET client_min_messages = warning; DROP SCHEMA IF EXISTS ruby CASCADE; CREATE SCHEMA ruby; SET search_path = ruby; SET timezone = 'UTC'")

step "pg: values in both formats, type maps" do
  text = %w[1::int2 2::int8 1.50::numeric 'x'::text true 1.5::float8 '2024-02-29'::date '2024-02-29\ 01:02:03.5'::timestamp '2024-02-29\ 01:02:03+02'::timestamptz '\x00ff'::bytea '{1,NULL}'::int[] '{"a":\ [1]}'::jsonb '10.0.0.1'::inet '1\ day'::interval NULL]
  sql = "SELECT #{text.join(", ").gsub("\\ ", " ")}"
  result = pg.exec(sql)
  show(result.values, result.fields, result.nfields.times.map { |i| [result.ftype(i), result.fmod(i), result.fsize(i), result.fformat(i)] })
  show(pg.exec_params(sql, [], 1).values)
  result.map_types!(PG::BasicTypeMapForResults.new(pg))
  show(result.values)
  pg.type_map_for_queries = PG::BasicTypeMapForQueries.new(pg)
  show(pg.exec_params("SELECT $1::int, $2::text, $3::bool, $4::float8, $5::int[], $6::text[], $7::numeric, $8::jsonb, $9::text", [5, "it's", true, 0.1, [1, 2], ["a b", nil], BigDecimal("1.5"), { a: 1 }, nil]).values)
  pg.type_map_for_queries = PG::TypeMapAllStrings.new
end

step "pg: prepared statements and what they describe" do
  pg.exec("CREATE TABLE thing (id serial PRIMARY KEY, name text NOT NULL UNIQUE, price numeric(8,2), made timestamptz)")
  pg.prepare("add", "INSERT INTO thing (name, price) VALUES ($1, $2) RETURNING id")
  show(3.times.map { |n| pg.exec_prepared("add", ["n#{n}", n * 1.25]).getvalue(0, 0) })
  described = pg.describe_prepared("add")
  show(described.nparams, described.nparams.times.map { |i| described.paramtype(i) }, described.fields)
  result = pg.exec("UPDATE thing SET price = 1 WHERE id > 1")
  show(result.cmd_tuples, result.cmd_status, result.ntuples, result.ftable(0)) rescue show($!.class)
  show(pg.exec("SELECT * FROM thing ORDER BY id").to_a, pg.exec("SELECT name FROM thing ORDER BY id").column_values(0))
end

step "pg: errors" do
  ["INSERT INTO thing (name) VALUES ('n0')", "INSERT INTO thing (name) VALUES (NULL)", "SELECT nme FROM thing", "SELEC", "SELECT 'x'::int", "SELECT 1/0"].each do |sql|
    pg.exec(sql)
  rescue PG::Error => e
    r = e.result
    show(e.class, e.message, [PG::PG_DIAG_SEVERITY, PG::PG_DIAG_SQLSTATE, PG::PG_DIAG_MESSAGE_DETAIL, PG::PG_DIAG_MESSAGE_HINT, PG::PG_DIAG_STATEMENT_POSITION, PG::PG_DIAG_SCHEMA_NAME, PG::PG_DIAG_TABLE_NAME, PG::PG_DIAG_COLUMN_NAME, PG::PG_DIAG_CONSTRAINT_NAME].map { |f| r.error_field(f) })
  end
  notices = []
  pg.set_notice_processor { |m| notices << m }
  pg.exec("SET client_min_messages = notice; DROP TABLE IF EXISTS nowhere; DO $$ BEGIN RAISE NOTICE 'told' USING DETAIL = 'd', HINT = 'h'; END $$")
  pg.set_error_verbosity(PG::PQERRORS_TERSE)
  attempt { pg.exec("SELECT nme FROM thing") }
  pg.set_error_verbosity(PG::PQERRORS_DEFAULT)
  show(notices)
end

step "pg: transactions, COPY, single rows, asynchronous queries, cancel" do
  show((pg.transaction { |c| c.exec("INSERT INTO thing (name) VALUES ('gone')"); raise "undo" } rescue $!.message), pg.exec("SELECT count(*) FROM thing").getvalue(0, 0), pg.transaction_status)
  coder = PG::TextEncoder::CopyRow.new
  show(pg.copy_data("COPY thing (name, price) FROM STDIN", coder) { pg.put_copy_data(["tab\there", 5]); pg.put_copy_data([nil.to_s, nil]) }.cmd_tuples)
  attempt { pg.copy_data("COPY thing (name) FROM STDIN") { raise PG::Error, "given up" } }
  attempt { pg.copy_data("COPY thing (name) FROM STDIN", coder) { pg.put_copy_data(["n0"]) } }
  rows = []
  pg.copy_data("COPY (SELECT name, price FROM thing ORDER BY id) TO STDOUT", PG::TextDecoder::CopyRow.new) { while (row = pg.get_copy_data) do rows << row end }
  show(rows)
  binary = PG::BinaryEncoder::CopyRow.new(type_map: PG::TypeMapByColumn.new([PG::BinaryEncoder::Int4.new, PG::BinaryEncoder::String.new])) rescue nil
  pg.copy_data("COPY thing (id, name) FROM STDIN BINARY", binary) { pg.put_copy_data([100, "binary"]) } if binary
  pg.send_query("SELECT g FROM generate_series(1, 5000) g")
  pg.set_single_row_mode
  count = 0
  pg.get_result.stream_each { count += 1 }
  pg.get_last_result
  show(count)
  pg.send_query("SELECT 1 AS a; SELECT 2 AS b, 3; SELECT 1/0")
  begin
    while (result = pg.get_result) do show(result.fields, result.res_status(result.result_status), result.error_message) end
  rescue PG::Error => e
    show(e.class)
  end
  pg.send_query("SELECT pg_sleep(20)")
  show(pg.cancel)
  attempt { pg.get_last_result }
  show(pg.exec("SELECT 1").values)
end

step "pg: pipelines" do
  pg.enter_pipeline_mode
  pg.send_query_params("INSERT INTO thing (name) VALUES ($1) RETURNING name", ["piped"])
  pg.send_query_params("SELECT 1/$1::int", [0])
  pg.send_query_params("SELECT 2", [])
  pg.pipeline_sync
  pg.send_query_params("SELECT count(*) FROM thing WHERE name = 'piped'", [])
  pg.pipeline_sync
  10.times do
    result = pg.get_result
    show(result && [result.res_status(result.result_status), result.ntuples.positive? ? result.values : nil])
  rescue PG::Error => e
    show(e.class)
  end
  pg.exit_pipeline_mode rescue show($!.class, $!.message)
end

step "pg: notifications, escapes, encodings, parameters" do
  pg.exec("LISTEN ruby_channel")
  pg.exec("NOTIFY ruby_channel, 'hello'")
  pg.wait_for_notify(2) { |channel, pid, payload| show(channel, pid == pg.backend_pid, payload) }
  show(pg.escape_literal("it's \\"), pg.escape_identifier('a"b'), pg.escape_bytea("\0\xff".b), pg.internal_encoding, pg.external_encoding)
  pg.set_client_encoding("LATIN1")
  show(pg.exec("SELECT chr(233)").getvalue(0, 0).bytes)
  pg.set_client_encoding("UTF8")
  show(%w[server_encoding DateStyle IntervalStyle TimeZone is_superuser integer_datetimes].map { |n| pg.parameter_status(n) }, pg.server_version / 10000, pg.protocol_version)
end

db = Sequel.connect(URL, search_path: "ruby", test: true)
db.extension(:pg_array, :pg_json, :pg_range, :pg_enum, :pg_interval, :pg_inet, :pg_row, :pg_timestamptz)
Sequel.extension(:pg_array_ops, :pg_json_ops, :pg_range_ops, :migration)
Sequel.default_timezone = :utc

step "Sequel: a schema made, read and changed" do
  db.create_enum(:mood, %w[sad ok happy])
  db.create_table(:artists) { primary_key :id; String :name, size: 50, null: false, unique: true; column :mood, :mood, default: "ok"; column :tags, "text[]"; column :data, :jsonb, default: Sequel.pg_jsonb({}); column :during, :daterange; column :patience, :interval; Time :made, default: Sequel.lit("timestamptz '2024-01-01 00:00+00'"); BigDecimal :price, size: [10, 2]; TrueClass :live, default: true }
  db.create_table(:albums) { primary_key :id; foreign_key :artist_id, :artists, null: false, on_delete: :cascade, deferrable: true; String :title, text: true; Integer :year; index [:artist_id, :year], name: :albums_by_year, where: { year: 1.. }; check(Sequel.lit("year > 0"), name: :year_ok) rescue constraint(:year_ok) { year > 0 }; uuid :key, default: Sequel.function(:gen_random_uuid) }
  show(db.tables.sort, db.schema(:artists).map { |n, c| [n, c[:type], c[:db_type], c[:allow_null], c[:default], c[:primary_key], c[:max_length]] })
  show(db.indexes(:albums), db.foreign_key_list(:albums), db.check_constraints(:albums).keys, db.primary_key_sequence(:artists))
  db.alter_table(:albums) { add_column :extra, :json; set_column_type :year, :bigint; set_column_default :title, "untitled"; set_column_not_null :title; add_constraint(:title_long) { char_length(:title) > 1 }; rename_column :extra, :more; drop_column :more; add_index :title, type: :hash; add_unique_constraint [:artist_id, :title], name: :one_title }
  db.create_view(:names, db[:artists].select(:name))
  db.create_or_replace_view(:names, db[:artists].select(:name, :price))
  show(db.views, db.table_exists?(:nothing), db.server_version >= 150000, db.schema(:albums).map { |n, c| [n, c[:db_type], c[:default]] })
  db.drop_view(:names)
end

step "Sequel: datasets" do
  a = db[:artists].insert(name: "Ann", tags: Sequel.pg_array(["x y", "z"]), data: Sequel.pg_jsonb({ "k" => [1, nil] }), during: Date.new(2024, 1, 1)...Date.new(2024, 2, 1), price: BigDecimal("1.25"), patience: "1 year 2 days")
  show(a, db[:artists].where(id: a).select(:name, :mood, :tags, :data, :during, :price, :live, :patience).first)
  show(db[:artists].returning(:id, :name).insert_conflict(target: :name, update: { price: 5 }).insert(name: "Ann"), db[:artists].insert_conflict.insert(name: "Ann"))
  db[:albums].multi_insert((1..5).map { |n| { artist_id: a, title: "album #{n}", year: 2000 + n } })
  db[:albums].import([:artist_id, :title, :year], [[a, "six", 2006], [a, "seven", 2007]])
  show(db[:albums].join(:artists, id: :artist_id).where { year > 2004 }.order(:year).select_map(%i[title name]))
  show(db[:albums].group_and_count { (Sequel[:year].sql_number % 2).as(:odd) }.order(:odd).all, db[:albums].avg(:year).to_s, db[:albums].where(title: /^s/i).order(:title).map(:title))
  show(db[:artists].where(Sequel.pg_array_op(:tags).contains(Sequel.pg_array(["z"]))).count, db[:artists].where(Sequel.pg_jsonb_op(:data).has_key?("k")).get(Sequel.pg_jsonb_op(:data).get_text("k")), db[:artists].where(Sequel.pg_range_op(:during).contains(Sequel.cast("2024-01-15", Date))).count)
  show(db[:t].with(:t, db[:albums].select(:title, Sequel.function(:row_number).over(order: :year).as(:n))).where(n: 2..3).select_order_map(:title))
  show(db[:r].with_recursive(:r, db.select(Sequel[1].as(:n)), db[:r].select { n + 1 }.where { n < 5 }).select_map(:n), db[:albums].where(year: 2001).update(year: Sequel[:year] + 100), db[:albums].where { year > 2100 }.returning(:title).delete)
  show(db[:albums].select(:title).order(:id).use_cursor(rows_per_fetch: 2).map { |r| r[:title] }, db[:albums].order(:id).paged_each(rows_per_fetch: 2).to_a.size)
  show(db[:albums].for_update.skip_locked.where(year: 2002).select_map(:title), db[:albums].explain.class, db[:albums].lateral.sql) rescue show($!.class, $!.message)
  show(db[:albums].select_for_update.sql) rescue show($!.class)
  show(db["SELECT * FROM (VALUES (1, 'a'), (2, NULL)) v(n, t) WHERE n IN ?", [1, 2]].all, db.fetch("SELECT :x::int AS n", x: 4).first, db[:albums].where(year: :$y).call(:select, y: 2002).size, db[:albums].where(year: :$y).prepare(:first, :by_year).call(y: 2003)[:title])
  show(db.copy_table(db[:albums].select(:title, :year).order(:id), format: :csv), db.copy_into(:artists, columns: [:name, :price], format: :csv, data: "Bob,1\nCat,\n"))
  show(db[:artists].merge_using(Sequel.as(db.values([["Ann", 9], ["Dan", 1]]), :v, %i[n p]), name: :n).merge_update(price: :p).merge_insert(name: :n, price: :p).merge, db[:artists].order(:name).select_map(%i[name price]).map { |n, p| [n, p&.to_s("F")] })
end

step "Sequel: errors, transactions, savepoints, locks" do
  attempt { db[:artists].insert(name: "Ann") }
  attempt { db[:artists].insert(name: nil) }
  attempt { db[:albums].insert(artist_id: 0, title: "xx") }
  attempt { db[:albums].insert(artist_id: 1, title: "xx", year: -1) }
  attempt { db[:nothing].all }
  db.transaction do
    db[:artists].insert(name: "outer")
    db.transaction(savepoint: true) { db[:artists].insert(name: "inner"); raise Sequel::Rollback }
    attempt { db.transaction(savepoint: true) { db[:artists].insert(name: "outer") } }
    db.after_commit { puts "committed" }
  end
  db.transaction(isolation: :serializable, read_only: true) { attempt { db[:artists].delete } } rescue show($!.class)
  db.transaction(rollback: :always) { db[:artists].delete }
  show(db[:artists].order(:name).select_map(:name))
  db.transaction { db.run("SET CONSTRAINTS ALL DEFERRED"); db[:albums].insert(artist_id: 77, title: "late"); db[:artists].insert(id: 77, name: "late") }
  tried = 0
  db.transaction(retry_on: Sequel::SerializationFailure, num_retries: 2) { tried += 1; raise Sequel::SerializationFailure if tried < 2 }
  db.transaction { db[:artists].lock("SHARE ROW EXCLUSIVE"); show(tried) }
  db.listen("sequel", timeout: 2, after_listen: ->(_) { db.notify("sequel", payload: "hi") }) { |channel, _, payload| show(channel, payload) }
  attempt { db.run("SET statement_timeout = 50"); db.run("SELECT pg_sleep(5)") }
  db.run("SET statement_timeout = 0")
end

step "Sequel: models" do
  class Artist < Sequel::Model(db[:artists]); one_to_many :albums; plugin :validation_helpers; plugin :dirty; def validate = (super; validates_presence :name); end
  class Album < Sequel::Model(db[:albums]); many_to_one :artist; plugin :prepared_statements; end
  a = Artist.create(name: "Eve", tags: Sequel.pg_array(%w[m n]))
  a.add_album(title: "one").itself
  a.add_album(title: "two")
  show(a.albums.map(&:title), Album.eager(:artist).where(artist: a).order(:id).all.map { |b| b.artist.name }, Artist.association_join(:albums).where(title: "two").get(:name), a.mood, a.live)
  a.update(price: "3.456")
  show(a.refresh.price, a.valid?, (Artist.create(name: "") rescue $!.message), (Artist.create(name: "Eve") rescue [$!.class, $!.message]))
  a.destroy
  show(Album.where(title: "two").count)
end

step "the end" do
  db.drop_table(:albums, :artists)
  db.drop_enum(:mood)
  db.disconnect
  pg.exec("DROP SCHEMA ruby CASCADE")
end
