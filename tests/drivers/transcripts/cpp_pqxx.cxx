// C++ with libpqxx. Prints what it gets, to be compared with what it gets from PostgreSQL. Takes an address.
#include <iostream>
#include <pqxx/pqxx>

static void step(const char *name) { std::cout << "== " << name << std::endl; }

static void show(const pqxx::result &found)
{
    for (pqxx::row::size_type c = 0; c < found.columns(); ++c)
        std::cout << found.column_name(c) << ":" << found.column_type(c) << " ";
    std::cout << "\n";
    for (const auto &row : found) {
        for (const auto &field : row)
            std::cout << (field.is_null() ? "NULL" : field.c_str()) << "|";
        std::cout << "\n";
    }
    std::cout << found.affected_rows() << " " << found.size() << std::endl;
}

template <typename Body> static void attempt(Body body)
{
    try {
        body();
    } catch (const pqxx::unique_violation &e) {
        std::cout << "unique_violation " << e.sqlstate() << " " << e.what();
    } catch (const pqxx::sql_error &e) {
        std::cout << "sql_error " << e.sqlstate() << " " << e.what();
    } catch (const std::exception &e) {
        std::cout << "exception " << e.what() << std::endl;
    }
}

class Listener : public pqxx::notification_receiver
{
public:
    using pqxx::notification_receiver::notification_receiver;
    void operator()(const std::string &payload, int pid) override
    {
        std::cout << channel() << " " << payload << " " << (pid == conn().backendpid()) << std::endl;
    }
};

int main(int, char *argv[])
{
    pqxx::connection db(argv[1]);
    {
        pqxx::nontransaction tx(db);
        tx.exec("SET client_min_messages = warning; DROP SCHEMA IF EXISTS pqxx CASCADE; CREATE SCHEMA pqxx; SET search_path = pqxx");
    }
    step("tables, parameters, prepared statements");
    {
        pqxx::work tx(db);
        tx.exec0("CREATE TABLE t (id serial PRIMARY KEY, name text UNIQUE NOT NULL, n numeric(6,2), raw bytea, live bool)");
        db.prepare("add", "INSERT INTO t (name, n, live) VALUES ($1, $2, $3) RETURNING id");
        for (int i = 0; i < 3; ++i)
            std::cout << tx.exec_prepared1("add", "n" + std::to_string(i), i * 1.25, i % 2 == 0)[0].as<int>() << " ";
        tx.exec_params0("UPDATE t SET raw = $1 WHERE id = $2", pqxx::binarystring(std::string("\0\xff", 2)), 1);
        show(tx.exec("SELECT * FROM t ORDER BY id"));
        std::cout << tx.exec_params1("SELECT $1::int + 1, $2::text", 41, nullptr)[0].as<int>() << " " << tx.quote("it's \\") << " " << tx.quote_name("a\"b") << " " << tx.esc_raw(std::string("\0\xff", 2)) << std::endl;
        tx.commit();
    }
    step("streams");
    {
        pqxx::work tx(db);
        pqxx::stream_to to(tx, "t", std::vector<std::string>{"name", "n"});
        to << std::make_tuple("tab\there", 5.5);
        to << std::make_tuple("back\\slash", nullptr);
        to.complete();
        show(tx.exec("SELECT name, n FROM t WHERE id > 3 ORDER BY id"));
        tx.commit();
    }
    step("cursors and pipelines");
    {
        pqxx::work tx(db);
        pqxx::stateless_cursor<pqxx::cursor_base::read_only, pqxx::cursor_base::owned> cursor(tx, "SELECT name FROM t ORDER BY id", "c", false);
        show(cursor.retrieve(1, 3));
        show(cursor.retrieve(3, 0));
        std::cout << cursor.size() << std::endl;
        pqxx::icursorstream stream(tx, "SELECT id FROM t ORDER BY id", "s", 2);
        pqxx::result part;
        while (stream >> part)
            std::cout << part.size() << " ";
        pqxx::pipeline pipe(tx);
        auto one = pipe.insert("SELECT 1"), two = pipe.insert("SELECT 2");
        std::cout << pipe.retrieve(two)[0][0].as<int>() << pipe.retrieve(one)[0][0].as<int>() << std::endl;
        pipe.complete();
    }
    step("errors and subtransactions");
    {
        attempt([&] { pqxx::work tx(db); tx.exec("INSERT INTO t (name) VALUES ('n1')"); });
        attempt([&] { pqxx::work tx(db); tx.exec("SELECT nothing FROM t"); });
        attempt([&] { pqxx::work tx(db); tx.exec1("SELECT * FROM t"); });
        attempt([&] { pqxx::work tx(db); tx.exec("SELECT 1/0"); });
        pqxx::work tx(db);
        attempt([&] {
            pqxx::subtransaction inner(tx, "inner");
            inner.exec("DELETE FROM t");
            inner.exec("INSERT INTO t (name) VALUES (NULL)");
        });
        std::cout << tx.exec1("SELECT count(*) FROM t")[0].as<int>() << std::endl;
        attempt([&] { pqxx::connection other(argv[1]); pqxx::transaction<pqxx::serializable, pqxx::readwrite_policy::read_only> reader(other); reader.exec("DELETE FROM pqxx.t"); });
    }
    step("notifications");
    {
        Listener listener(db, "channel");
        {
            pqxx::work tx(db);
            tx.exec("NOTIFY channel, 'hello'");
            tx.commit();
        }
        std::cout << db.await_notification(2, 0) << std::endl;
    }
    step("the end");
    pqxx::nontransaction(db).exec("DROP SCHEMA pqxx CASCADE");
    return 0;
}
