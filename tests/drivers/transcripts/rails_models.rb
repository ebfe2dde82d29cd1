# What models do: run within the application that rails_app.rb makes.
$stdout.sync = true
ActiveRecord::Base.time_zone_aware_types = [:datetime]
Time.zone = "UTC"

def show(*values)
  puts values.map { |v| v.is_a?(BigDecimal) ? v.to_s("F") : v.inspect }.join(" | ")
end

def part(name)
  puts "-- #{name}"
  yield
rescue StandardError => e
  puts "#{e.class}: #{e.message}", ("  cause #{e.cause.class}" if e.cause)
end

connection = ActiveRecord::Base.connection
[Tagging, Order, Customer, Supplier].each(&:delete_all)
connection.reset_pk_sequence!("suppliers")
connection.reset_pk_sequence!("orders")

part("every type, written and read") do
  c = Customer.create!(email: "Ann@Example.com", mood: "happy", settings: { "a" => [1, nil, { "b" => true }] }, raw: { z: 1 },
    tags: ["x y", "q\"uote", "back\\slash", ""], marks: [1, nil, 3], address: "10.0.0.1/24", net: "10.0.0.0/8", mac: "08:00:2b:01:02:03",
    flags: "10101010", more: "101", photo: "\x00\xFF\\x".b, born: Date.new(1970, 2, 28), wakes: "07:30:15.25", patience: 1.year + 2.days + 3.hours,
    owes: 12.5, search: "'fat' 'rat'")
  show(c.id =~ /\A\h{8}-\h{4}-4\h{3}-\h{4}-\h{12}\z/)
  c.reload
  show(c.mood, c.settings, c.raw, c.tags, c.marks, c.address.to_s, c.net.to_s, c.mac, c.flags, c.more, c.photo, c.born, c.wakes.to_s, c.patience, c.owes, c.search)
  show(c.status, c.fresh?, c.theme, c.lock_version)
  o = Order.create!(customer: c, code: "A", total: "12.345", weight: 0.1, big: 2**62, during: Date.new(2024, 1, 1)..Date.new(2024, 1, 31), span: 1...5,
    wide: 5.., cost: BigDecimal("1.5")..BigDecimal("2.5"), slot: Time.utc(2024, 1, 1)...Time.utc(2024, 1, 2), zoned: Time.utc(2024, 1, 1)...Time.utc(2024, 1, 2),
    shipped_at: Time.utc(2024, 2, 29, 1, 2, 3.456789r), seen_at: Time.utc(2024, 2, 29))
  o.reload
  show(o.total, o.weight, o.big, o.during, o.span, o.wide, o.cost, o.slot, o.zoned, o.shipped_at.iso8601(6), o.seen_at, o.paid, o.note)
  show(Order.columns.map { |k| [k.name, k.type, k.sql_type, k.null, k.default, k.comment] })
  show(Customer.columns.map { |k| [k.name, k.type, k.sql_type, k.null, k.default, k.default_function, k.limit, k.array?] })
end

part("changes, dirty values, enum, store") do
  c = Customer.first
  c.theme = "dark"
  c.tags << "more"
  c.settings["n"] = 5
  show(c.changed, c.changes.keys)
  c.save!
  c.regular!
  show(Customer.regular.count, Customer.where(status: :regular).pluck(:settings, :tags), c.reload.theme)
  show(Customer.where("settings @> ?", { theme: "dark" }.to_json).count, Customer.where("? = ANY(tags)", "more").count)
  show(Customer.where(tags: ["x"]).count, Customer.where("settings ? :key", key: "theme").to_sql) rescue show($!.class)
  show(Customer.named("ANN@").pluck(:email), Customer.named("100%").count)
end

part("associations, joins, preloading, aggregates") do
  c = Customer.first
  s = Supplier.create!(name: "Acme", rating: 4.25, country: "DE")
  t = s.children.create!(name: "Acme East", rating: 3)
  5.times { |n| c.orders.create!(code: "B#{n}", total: n, supplier: n.odd? ? s : t, paid: n > 2, during: Date.new(2024, n + 1, 1)...Date.new(2024, n + 2, 1)) }
  show(c.orders.count, c.orders.sum(:total), c.orders.average(:total), c.orders.maximum(:code), c.orders.group(:paid).count)
  show(Order.joins(:supplier).group("suppliers.name").having("count(*) > 1").order("suppliers.name").sum(:total).transform_values { |v| v.to_s("F") })
  show(Order.left_joins(:supplier).where(suppliers: { id: nil }).pluck(:code))
  show(Order.includes(:supplier, :customer).order(:code).map { |o| [o.code, o.supplier&.name, o.customer.email] })
  show(Order.eager_load(supplier: :parent).order(:code).limit(2).offset(1).map { |o| o.supplier&.parent&.name })
  show(c.suppliers.distinct.order(:name).pluck(:name), Supplier.where.missing(:orders).count)
  show(Order.where(total: 1..3).or(Order.where(code: "A")).order(:code).pluck(:code), Order.where.not(supplier: s).order(:code).ids.size)
  show(Order.where("during @> ?::date", "2024-02-10").pluck(:code), Order.where("during && daterange(?, ?)", "2024-02-10", "2024-04-01").order(:code).pluck(:code))
  show(Order.order(Arel.sql("total DESC NULLS LAST, code")).pick(:code), Order.order(:code).last.code, Order.order(:code).reverse_order.first.code)
  show(Order.exists?(code: "A"), Order.find_by(code: "zz"), (Order.find(0) rescue $!.message))
  show(Order.from("(SELECT * FROM orders WHERE paid) AS orders").count, Order.where(id: Order.where(paid: true).select(:id)).count)
  show(Order.select("code, row_number() OVER (PARTITION BY paid ORDER BY code) AS n").order(:code).map { |o| [o.code, o.n] })
  show(PaidOrder.order(:total).pluck(:total).map { |v| v.to_s("F") }, (PaidOrder.first.update!(total: 1) rescue $!.class))
  o = Order.order(:code).first
  o.taggings.create!
  show(Tagging.last.taggable.code, Order.order(:code).optimizer_hints("x").to_sql) rescue show($!.class)
  show(Order.where(code: "A").annotate("why").to_sql)
end

part("batches") do
  Supplier.insert_all((1..250).map { |n| { name: "bulk #{n}", rating: n % 10 } })
  sizes = []
  Supplier.where("name LIKE 'bulk%'").in_batches(of: 100) { |r| sizes << r.count }
  show(sizes, Supplier.where("name LIKE 'bulk%'").find_each(batch_size: 60).sum { |s| s.rating }.to_s)
  show(Supplier.where("name LIKE 'bulk%'").in_batches(of: 100).update_all("rating = rating + 1"), Supplier.where("name LIKE 'bulk 1%'").delete_all)
  show(Supplier.where("name LIKE 'bulk%'").in_batches(of: 90).delete_all, Supplier.count)
end

part("insert_all, upsert_all") do
  show(Supplier.insert_all([{ name: "Acme" }, { name: "New" }], returning: %w[name]).rows)
  show((Supplier.insert_all!([{ name: "Acme" }]) rescue [$!.class, $!.message]))
  show(Supplier.upsert_all([{ name: "Acme", rating: 9 }, { name: "Newer", rating: 1 }], unique_by: :name, returning: %w[name rating]).to_a)
  show(Supplier.upsert({ name: "New", rating: 7 }, unique_by: :index_suppliers_on_name).length, Supplier.order(:name).pluck(:name, :rating).map { |n, r| [n, r&.to_s("F")] })
  show((Supplier.upsert_all([{ name: "Acme" }], unique_by: :rating) rescue $!.message))
  show(Supplier.create_or_find_by!(name: "Acme").rating.to_s("F"), Supplier.find_or_create_by!(name: "Newest").name)
end

part("errors") do
  show((Supplier.new(name: "Acme").save(validate: false) rescue [$!.class, $!.message, $!.cause.class]))
  show((Supplier.create!(name: "acme") rescue $!.message))
  show((Order.new(customer_id: SecureRandom.uuid.tr("a-f0-9", "0"), code: "Z").save(validate: false) rescue [$!.class, $!.message]))
  show((Order.insert!({ customer_id: Customer.first.id }) rescue [$!.class, $!.message]))
  show((Order.insert!({ customer_id: Customer.first.id, code: "N", total: -1 }) rescue [$!.class, $!.message]))
  show((Supplier.insert!({ name: "x", country: "long" }) rescue [$!.class, $!.message]))
  show((Supplier.insert!({ name: "x", rating: 12345 }) rescue [$!.class, $!.message]))
  show((Supplier.where("nothing = 1").to_a rescue [$!.class, $!.message]))
  show((Supplier.find_by_sql("SELEC") rescue [$!.class, $!.message]))
  show((Supplier.where(id: 2**70).to_a), (Supplier.where(rating: "abc").to_a.size), (Customer.where(id: "abc").to_a))
  show((connection.execute("SELECT 1/0") rescue [$!.class, $!.message]))
  show((Supplier.where(name: "Acme").order(:id).first.destroy! rescue [$!.class, $!.message]))
  show((connection.transaction { connection.execute("SET LOCAL statement_timeout = 50"); connection.execute("SELECT pg_sleep(5)") } rescue [$!.class, $!.message]))
end

part("transactions") do
  count = -> { Supplier.count }
  before = count.()
  Supplier.transaction do
    Supplier.create!(name: "outer")
    Supplier.transaction(requires_new: true) { Supplier.create!(name: "inner"); raise ActiveRecord::Rollback }
    begin
      Supplier.transaction(requires_new: true) { Supplier.insert!({ name: "outer" }) }
    rescue ActiveRecord::RecordNotUnique
      show("inner failed", count.() - before)
    end
    Supplier.transaction { Supplier.create!(name: "joined") }
  end
  show(count.() - before, Supplier.where(name: %w[outer inner joined]).order(:name).pluck(:name))
  Supplier.transaction(isolation: :serializable) { show(connection.select_value("SHOW transaction_isolation")) }
  Supplier.transaction { Supplier.lock.find_by!(name: "outer").update!(rating: 5) }
  s = Supplier.find_by!(name: "outer")
  s.with_lock("FOR UPDATE NOWAIT") { s.update!(rating: 6) }
  show(s.reload.rating, Supplier.lock("FOR SHARE SKIP LOCKED").where(name: "outer").ids.size)
  fired = []
  Supplier.after_commit { fired << name }
  Supplier.transaction { Supplier.create!(name: "told") }
  Supplier.transaction { Supplier.create!(name: "not told"); raise ActiveRecord::Rollback }
  show(fired)
end

part("optimistic locking") do
  a, b = Customer.first, Customer.first
  a.update!(email: "first@example.com")
  show((b.update!(email: "second@example.com") rescue [$!.class, $!.message]), a.lock_version, b.reload.email)
  show((Customer.find(b.id).tap { |c| Customer.where(id: c.id).update_all("lock_version = lock_version + 1") }.destroy rescue $!.class))
end

part("two connections: locks, deadlines, advisory locks") do
  a, b = Supplier.find_by!(name: "outer"), Supplier.find_by!(name: "told")
  ready = Queue.new
  go = Queue.new
  holder = Thread.new { Supplier.connection_pool.with_connection { Supplier.transaction { Supplier.lock.find(a.id); ready << 1; go.pop } } }
  ready.pop
  show((Supplier.transaction { Supplier.lock("FOR UPDATE NOWAIT").find(a.id) } rescue [$!.class, $!.message.lines.first]))
  show((Supplier.transaction { connection.execute("SET LOCAL lock_timeout = 50"); Supplier.lock.find(a.id) } rescue [$!.class, $!.message.lines.first]))
  show(Supplier.transaction { Supplier.lock("FOR UPDATE SKIP LOCKED").where(id: [a.id, b.id]).pluck(:name) })
  go << 1
  holder.join
  show(connection.get_advisory_lock(12345), connection.release_advisory_lock(12345), connection.release_advisory_lock(12345))
  results = [[a.id, b.id], [b.id, a.id]].map do |first, second|
    Thread.new do
      Supplier.connection_pool.with_connection do
        Supplier.transaction { Supplier.where(id: first).update_all("rating = 1"); sleep 0.4; Supplier.where(id: second).update_all("rating = 2") }
        "done"
      rescue ActiveRecord::Deadlocked => e
        e.class.name
      end
    end
  end
  show(results.map(&:value).sort)
end

part("raw connections") do
  show(connection.exec_query("SELECT $1::int + 1 AS n, now() - now() AS i, ARRAY[1,2] AS a, 1.5::numeric AS d, true AS b, '2024-01-01'::date AS day, '[1]'::jsonb AS j", "q", [ActiveRecord::Relation::QueryAttribute.new("n", 41, ActiveRecord::Type::Integer.new)]).to_a) rescue show($!.class, $!.message)
  show(connection.select_all("SELECT 1 AS a, 'x' AS b, 1.5::float8 AS c, now()::date - now()::date AS d, '{1,2}'::int[] AS e, '[1,5)'::int4range AS r, '1 day'::interval AS i").to_a.map { |h| h.transform_values(&:to_s) })
  show(connection.select_rows("VALUES (1, 'a'), (2, NULL)"), connection.select_values("SELECT generate_series(1, 3)"))
  raw = connection.raw_connection
  raw.copy_data("COPY suppliers (name, rating) FROM STDIN CSV") { raw.put_copy_data("copied 1,1\ncopied 2,\n") }
  got = []
  raw.copy_data("COPY (SELECT name, rating FROM suppliers WHERE name LIKE 'copied%' ORDER BY 1) TO STDOUT CSV") { while (row = raw.get_copy_data) do got << row end }
  show(got)
  show(connection.explain(Supplier.where(id: 1).arel, []).class)
  show(connection.tables.sort, connection.views, connection.data_sources.size, connection.primary_keys("items"), connection.primary_key("orders"))
  show(connection.indexes("customers").map { |i| [i.name, i.columns, i.unique, i.where, i.using, i.orders, i.opclasses, i.comment] })
  show(connection.foreign_keys("orders").map { |f| [f.from_table, f.to_table, f.column, f.name, f.on_delete, f.options[:validate]] })
  show(connection.check_constraints("orders").map { |c| [c.name, c.expression] }, connection.table_comment("customers"))
  show(connection.extensions.sort, connection.extension_enabled?("pgcrypto"), connection.schema_names.sort, connection.current_schema, connection.encoding, connection.collation, connection.ctype)
  show(connection.pk_and_sequence_for("orders").map(&:to_s), connection.serial_sequence("orders", "id"), connection.supports_insert_returning?, connection.client_min_messages)
  connection.create_schema("other")
  connection.schema_search_path = "other, public"
  connection.create_table(:things) { |t| t.string :name }
  show(connection.tables.include?("things"), connection.schema_search_path, connection.table_exists?("other.things"))
  connection.drop_schema("other")
  connection.schema_search_path = "public"
end

part("statements that outlive their tables") do
  20.times { Supplier.find_by(name: "Acme") }
  connection.add_column(:suppliers, :late, :integer)
  show(Supplier.find_by(name: "Acme").name)
  Supplier.reset_column_information
  show(Supplier.find_by(name: "Acme").late)
  connection.remove_column(:suppliers, :late)
  Supplier.reset_column_information
  Supplier.transaction { show(Supplier.find_by(name: "Acme").attributes.key?("late")) }
  connection.execute("DEALLOCATE ALL")
  show((Supplier.find_by(name: "Acme") rescue [$!.class, $!.message])&.class)
  connection.reconnect!
  show(Supplier.find_by(name: "Acme").name, connection.active?)
  connection.disconnect!
end
