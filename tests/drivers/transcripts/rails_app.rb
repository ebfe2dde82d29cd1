# A Rails application: generators, migrations up and down, both forms of its schema file, models, seeds.
# Prints what it gets, to be compared with what it gets from PostgreSQL. Takes an address; works in a folder of its own.
require "erb"
require "fileutils"
require "open3"
require "tmpdir"
require "uri"

address = URI(ARGV[0])
ROOT = Dir.mktmpdir("rails_app")
at_exit { FileUtils.rm_rf(ROOT) }

def put(path, text)
  FileUtils.mkdir_p(File.dirname("#{ROOT}/#{path}"))
  File.write("#{ROOT}/#{path}", text)
end

def step(name)
  puts "== #{name}"
  $stdout.flush
end

def run(*words, **env)
  out, status = Open3.capture2e(env.transform_keys(&:to_s), *words, chdir: ROOT)
  out = out.gsub(ROOT, "").gsub(/\d+\.\d{4,}s/, "_s").gsub(/^== (.*?) =+$/, '## \1').gsub(/Run options: .*|Finished in .*|--seed \d+/, "")
  out = out.gsub(/port(:?) \d+/, 'port\1').gsub(/-\d+-\d+ /, "").gsub(/^Running via Spring.*\n/, "").gsub(/\b\d{14}/, "_version_")
  puts "$ #{words.join(" ")}", out, ("status #{status.exitstatus}" unless status.success?)
  $stdout.flush
end

put "config/boot.rb", %(require "rubygems"\n)
put "config/application.rb", <<~RUBY
  require_relative "boot"
  require "rails"
  require "active_record/railtie"
  require "rails/test_unit/railtie"
  module Shop
    class Application < Rails::Application
      config.load_defaults 6.1
      config.eager_load = false
      config.active_record.schema_format = ENV.fetch("SCHEMA_FORMAT", "ruby").to_sym
      config.active_record.dump_schema_after_migration = true
      config.secret_key_base = "x" * 40
      config.logger = Logger.new(nil)
      config.active_support.deprecation = :silence
      config.generators.test_framework nil
    end
  end
RUBY
put "config/environment.rb", %(require_relative "application"\nRails.application.initialize!\n)
put "Rakefile", %(require_relative "config/application"\nRails.application.load_tasks\n)
put "bin/rails", %(#!/usr/bin/env ruby\nAPP_PATH = File.expand_path("../config/application", __dir__)\nrequire_relative "../config/boot"\nrequire "rails/commands"\n)
put "config/database.yml", <<~YAML
  default: &default
    adapter: postgresql
    host: #{address.host}
    port: #{address.port}
    username: #{address.user || "postgres"}
    password: #{address.password || '""'}
    encoding: unicode
    pool: 5
    variables:
      statement_timeout: 20000
  development:
    <<: *default
    database: rails_development
  test:
    <<: *default
    database: rails_test
  production:
    <<: *default
    database: rails_production
    prepared_statements: false
YAML

rails = ["ruby", "bin/rails"]
step "databases"
unseen = { "DISABLE_DATABASE_ENVIRONMENT_CHECK" => "1", "RAILS_ENV" => "production" }
Open3.capture2e(unseen, *rails, "db:drop:all", chdir: ROOT)
run(*rails, "db:create")
run(*rails, "db:create", "db:version")

step "generators"
run(*rails, "generate", "model", "supplier", "name:string:uniq", "rating:decimal{5,2}", "--no-timestamps")
run(*rails, "generate", "migration", "AddCountryToSuppliers", "country:string{2}:index")
Dir["#{ROOT}/db/migrate/*"].sort.each { |f| puts File.read(f) }

put "db/migrate/29990101000001_enable.rb", <<~RUBY
  class Enable < ActiveRecord::Migration[6.1]
    def change
      enable_extension "pgcrypto"
      enable_extension "pg_trgm"
      enable_extension "uuid-ossp"
    end
  end
RUBY
put "db/migrate/29990101000002_tables.rb", <<~RUBY
  class Tables < ActiveRecord::Migration[6.1]
    def up
      execute "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')"
      create_table :customers, id: :uuid, comment: "who buys" do |t|
        t.string :email, null: false, limit: 120, comment: "unique whatever its case"
        t.integer :status, null: false, default: 0, limit: 2
        t.column :mood, :mood, default: "ok"
        t.jsonb :settings, null: false, default: {}
        t.json :raw
        t.text :tags, array: true, default: []
        t.integer :marks, array: true
        t.inet :address
        t.cidr :net
        t.macaddr :mac
        t.bit :flags, limit: 8, default: "00000001"
        t.bit_varying :more
        t.binary :photo
        t.date :born
        t.time :wakes
        t.interval :patience
        t.money :owes
        t.tsvector :search
          t.integer :lock_version, default: 0, null: false
        t.timestamps
        t.index "lower(email)", unique: true, name: "customers_email"
        t.index :settings, using: :gin
        t.index :tags, using: :gin
        t.index :email, opclass: :varchar_pattern_ops, name: "customers_email_like"
        t.index :created_at, order: :desc, where: "(status > 0)", name: "busy_customers"
      end
      create_table :orders do |t|
        t.references :customer, type: :uuid, null: false, foreign_key: { on_delete: :cascade }
        t.belongs_to :supplier, foreign_key: { name: "fk_supplier" }
        t.string :number, index: { unique: true }
        t.decimal :total, precision: 12, scale: 2, default: "0.0"
        t.float :weight
        t.bigint :big
        t.boolean :paid, default: false, null: false
        t.daterange :during
        t.int4range :span
        t.int8range :wide
        t.numrange :cost
        t.tsrange :slot
        t.tstzrange :zoned
        t.datetime :shipped_at, precision: 6
        t.column :seen_at, :timestamptz
        t.check_constraint "total >= 0", name: "total_not_negative"
        t.timestamps null: true
      end
      create_table :items, primary_key: [:order_id, :line] do |t|
        t.bigint :order_id, null: false
        t.integer :line, null: false
        t.string :what
      end
      create_table :labels, id: false do |t|
        t.string :label
        t.bigint :order_id
      end
      create_table :labels_orders do |t|
        t.string :taggable_type
        t.bigint :taggable_id
        t.index [:taggable_type, :taggable_id], name: "taggables"
      end
      create_join_table :orders, :labels, table_name: :stuck_labels
      add_foreign_key :items, :orders, on_delete: :cascade, deferrable: false
      execute "CREATE VIEW paid_orders AS SELECT id, customer_id, total FROM orders WHERE paid"
    end

    def down
      execute "DROP VIEW paid_orders"
      drop_join_table :orders, :labels, table_name: :stuck_labels
      drop_table :labels_orders
      drop_table :labels
      drop_table :items
      drop_table :orders
      drop_table :customers
      execute "DROP TYPE mood"
    end
  end
RUBY
put "db/migrate/29990101000003_changes.rb", <<~RUBY
  class Changes < ActiveRecord::Migration[6.1]
    def change
      rename_column :orders, :number, :code
      rename_table :labels_orders, :taggings
      rename_index :taggings, :taggables, :taggables_by_type
      add_column :orders, :note, :text, default: "none", null: false
      change_column_null :orders, :code, false, "none"
      change_column_default :orders, :weight, from: nil, to: 1.5
      change_column_comment :orders, :note, from: nil, to: "for the packer's eyes"
      change_table_comment :orders, from: nil, to: "what is bought"
      reversible do |dir|
        dir.up { change_column :orders, :big, :decimal, precision: 30, scale: 2, default: 0 }
        dir.down { change_column :orders, :big, :bigint, default: nil }
      end
      add_reference :suppliers, :parent, foreign_key: { to_table: :suppliers, on_delete: :nullify }
      add_timestamps :suppliers, null: true
      add_check_constraint :suppliers, "rating >= 0 AND rating <= 100", name: "rating_range"
    end
  end
RUBY
put "db/migrate/29990101000004_concurrently.rb", <<~RUBY
  class Concurrently < ActiveRecord::Migration[6.1]
    disable_ddl_transaction!
    def change
      add_index :orders, [:paid, :created_at], algorithm: :concurrently, order: { created_at: "DESC NULLS LAST" }
      add_index :suppliers, :name, using: :hash, name: "suppliers_hash"
      add_index :suppliers, :name, using: :gin, opclass: :gin_trgm_ops, name: "suppliers_trgm"
      remove_foreign_key :orders, :suppliers, name: "fk_supplier"
      add_foreign_key :orders, :suppliers, validate: false
      reversible { |dir| dir.up { validate_foreign_key :orders, :suppliers } }
    end
  end
RUBY

step "migrations, up and down"
run(*rails, "db:migrate", "db:migrate:status")
puts File.read("#{ROOT}/db/schema.rb")
run(*rails, "db:rollback", "STEP=3")
run(*rails, "db:migrate:redo")
run(*rails, "db:migrate")
run(*rails, "db:migrate")
first = File.read("#{ROOT}/db/schema.rb")

step "the schema file is loaded and dumped again"
run(*rails, "db:create", "db:schema:load", RAILS_ENV: "production", DISABLE_DATABASE_ENVIRONMENT_CHECK: "1")
run(*rails, "runner", "ActiveRecord::Base.connection.execute(%q(CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')))", RAILS_ENV: "production")
run(*rails, "db:schema:load", "db:schema:dump", RAILS_ENV: "production", DISABLE_DATABASE_ENVIRONMENT_CHECK: "1")
puts (File.read("#{ROOT}/db/schema.rb") == first).to_s
run(*rails, "db:drop", RAILS_ENV: "production")
run(*rails, "db:drop", RAILS_ENV: "production", DISABLE_DATABASE_ENVIRONMENT_CHECK: "1")

step "structure.sql"
run(*rails, "db:schema:dump", SCHEMA_FORMAT: "sql")
structure = File.read("#{ROOT}/db/structure.sql")
# Each server describes its extensions in its own words; psql's restriction has a random word.
same = ->(text) { text.gsub(/^-- Dumped.*\n|^\\(un)?restrict .*\n|^COMMENT ON EXTENSION.*\n/, "").gsub(/\d{14}/, "_version_") }
puts same[structure]
run(*rails, "db:create", "db:schema:load", "db:schema:dump", RAILS_ENV: "production", SCHEMA_FORMAT: "sql", DISABLE_DATABASE_ENVIRONMENT_CHECK: "1")
puts (same[File.read("#{ROOT}/db/structure.sql")] == same[structure]).to_s

put "app/models/application_record.rb", "class ApplicationRecord < ActiveRecord::Base\n  self.abstract_class = true\nend\n"
put "app/models/supplier.rb", <<~RUBY
  class Supplier < ApplicationRecord
    belongs_to :parent, class_name: "Supplier", optional: true
    has_many :children, class_name: "Supplier", foreign_key: :parent_id
    has_many :orders
    validates :name, uniqueness: { case_sensitive: false }
  end
RUBY
put "app/models/customer.rb", <<~RUBY
  class Customer < ApplicationRecord
    enum status: { fresh: 0, regular: 1, gone: 2 }
    store_accessor :settings, :theme, :size
    has_many :orders, dependent: :destroy
    has_many :suppliers, through: :orders
    attribute :patience, :interval
    scope :named, ->(name) { where("email ILIKE ?", "%\#{sanitize_sql_like(name)}%") }
  end
RUBY
put "app/models/order.rb", <<~RUBY
  class Order < ApplicationRecord
    belongs_to :customer
    belongs_to :supplier, optional: true
    has_many :taggings, as: :taggable
  end
RUBY
put "app/models/tagging.rb", "class Tagging < ApplicationRecord\n  belongs_to :taggable, polymorphic: true\nend\n"
put "app/models/paid_order.rb", "class PaidOrder < ApplicationRecord\n  self.primary_key = :id\n  def readonly? = true\nend\n"
put "models.rb", File.read("#{__dir__}/rails_models.rb")

step "models, with prepared statements"
run(*rails, "runner", "models.rb")
step "models, without prepared statements"
run(*rails, "runner", "models.rb", RAILS_ENV: "production")

step "seeds, truncation"
put "db/seeds.rb", %(Supplier.insert_all((1..3).map { |n| { name: "seed \#{n}" } })\nputs Supplier.count\n)
run(*rails, "db:seed", "db:truncate_all")
run(*rails, "db:seed:replant")

step "fixtures, which come before what they refer to"
put "test/fixtures/customers.yml", "ann:\n  id: <%= ActiveRecord::FixtureSet.identify(:ann, :uuid) %>\n  email: ann@example.org\n"
put "test/fixtures/items.yml", "one:\n  order_id: 1\n  line: 1\n  what: nails\n"
put "test/fixtures/orders.yml", "first:\n  id: 1\n  customer: ann\n  supplier: smith\n  code: A1\n"
put "test/fixtures/suppliers.yml", "mill:\n  name: mill\n  parent: smith\nsmith:\n  name: smith\n"
all = "puts Order.all.map { |o| [o.code, o.customer.email, o.supplier.name] }.inspect, Supplier.order(:name).map { |s| [s.name, s.parent&.name] }.inspect"
run(*rails, "db:fixtures:load", FIXTURES: "items,orders,suppliers,customers")
run(*rails, "runner", all)
run(*rails, "db:fixtures:load")
run(*rails, "runner", "begin; Supplier.insert!({ name: 'lost', parent_id: 0 }); rescue => e; puts e.class, e.message; end")

step "setup and reset"
run(*rails, "db:reset", SCHEMA_FORMAT: "sql")
run(*rails, "db:rollback", "STEP=6", SCHEMA_FORMAT: "sql")
run(*rails, "db:drop:all", DISABLE_DATABASE_ENVIRONMENT_CHECK: "1")
