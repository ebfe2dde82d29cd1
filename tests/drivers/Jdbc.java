import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.Array;
import java.sql.Connection;
import java.sql.Date;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.util.Objects;
import java.util.Properties;
import java.util.UUID;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;

/** What pgjdbc users do, checked step by step; prints "ok NAME" per step and exits 1 at the first that fails. */
public class Jdbc {
  static void same(String what, Object expected, Object actual) {
    if (!Objects.equals(expected, actual)) {
      throw new AssertionError(what + ": expected " + expected + ", got " + actual);
    }
  }

  static Connection open(String url, String... settings) throws SQLException {
    Properties properties = new Properties();
    properties.setProperty("user", "keeper");
    properties.setProperty("password", "sesame");
    for (int i = 0; i < settings.length; i += 2) {
      properties.setProperty(settings[i], settings[i + 1]);
    }
    return DriverManager.getConnection(url, properties);
  }

  public static void main(String[] args) throws Exception {
    String url = args[0];
    try (Connection c = open(url)) {
      values(c, "text");
    }
    try (Connection c = open(url, "prepareThreshold", "-1", "binaryTransfer", "true")) {
      values(c, "binary");
    }
    try (Connection c = open(url)) {
      batch(c);
      fetchSize(c);
      copy(c);
      errors(c);
      cancel(c);
      metadata(c);
      savepoint(c);
      callable(c);
      largeObjects(c);
    }
    encodings(url);
  }

  /** The driver insists on UTF8, unless it is told to follow what the server says. */
  static void encodings(String url) throws SQLException {
    try (Connection c = open(url); Statement s = c.createStatement()) {
      s.execute("SET client_encoding = 'LATIN1'");
      throw new AssertionError("the driver has not noticed");
    } catch (SQLException error) {
      same("changed", "08006", error.getSQLState());
      same(error.getMessage(), true, error.getMessage().contains("client_encoding parameter was changed to LATIN1"));
    }
    try (Connection c = open(url, "allowEncodingChanges", "true"); Statement s = c.createStatement()) {
      // Its statements are UTF8 even so (with PostgreSQL, too); answers are read as they come.
      String[][] cases = {{"LATIN1", "chr(233)", "\u00e9"}, {"SJIS", "chr(12477)", "\u30bd"}};
      for (String[] one : cases) {
        s.execute("SET client_encoding = '" + one[0] + "'");
        try (ResultSet r = s.executeQuery("SELECT " + one[1])) {
          r.next();
          same(one[0], one[2], r.getString(1));
        }
      }
    }
    System.out.println("ok encodings");
  }

  static void values(Connection c, String mode) throws SQLException {
    try (Statement s = c.createStatement()) {
      s.execute("DROP TABLE IF EXISTS jv");
      s.execute("CREATE TABLE jv (a int PRIMARY KEY, b bigint, c text, d numeric(12,3), e boolean, f float8,"
          + " g date, h timestamp, i bytea, j uuid, k int[])");
    }
    UUID id = UUID.fromString("00112233-4455-6677-8899-aabbccddeeff");
    try (PreparedStatement p = c.prepareStatement("INSERT INTO jv VALUES (?,?,?,?,?,?,?,?,?,?,?)")) {
      for (int n = 0; n < 8; n++) {
        p.setInt(1, n);
        p.setLong(2, 1L << (n * 7));
        p.setString(3, n == 0 ? null : "snow \u2603 " + n);
        p.setBigDecimal(4, new BigDecimal("123.4").add(new BigDecimal(n)));
        p.setBoolean(5, n % 2 == 0);
        p.setDouble(6, n / 3.0);
        p.setDate(7, Date.valueOf("2024-02-29"));
        p.setTimestamp(8, Timestamp.valueOf("2024-02-29 12:34:56.789"));
        p.setBytes(9, new byte[] {0, (byte) n, -1});
        p.setObject(10, id);
        Array array = c.createArrayOf("int4", new Integer[] {1, null, n});
        p.setArray(11, array);
        same("inserted", 1, p.executeUpdate());
      }
    }
    try (PreparedStatement p = c.prepareStatement("SELECT * FROM jv WHERE a = ?")) {
      for (int n = 0; n < 8; n++) {
        p.setInt(1, n);
        try (ResultSet r = p.executeQuery()) {
          if (!r.next()) {
            throw new AssertionError("row " + n + " is missing");
          }
          same("bigint", 1L << (n * 7), r.getLong(2));
          same("text", n == 0 ? null : "snow \u2603 " + n, r.getString(3));
          same("numeric", new BigDecimal("123.400").add(new BigDecimal(n)), r.getBigDecimal(4));
          same("boolean", n % 2 == 0, r.getBoolean(5));
          same("float8", n / 3.0, r.getDouble(6));
          same("date", Date.valueOf("2024-02-29"), r.getDate(7));
          same("timestamp", Timestamp.valueOf("2024-02-29 12:34:56.789"), r.getTimestamp(8));
          same("bytea", n, (int) r.getBytes(9)[1]);
          same("uuid", id, r.getObject(10));
          Integer[] items = (Integer[]) r.getArray(11).getArray();
          same("array", null, items[1]);
          same("array", n, items[2]);
          ResultSetMetaData m = r.getMetaData();
          same("precision", 12, m.getPrecision(4));
          same("type", "numeric", m.getColumnTypeName(4));
        }
      }
    }
    System.out.println("ok values in " + mode);
  }

  static void batch(Connection c) throws SQLException {
    try (Statement s = c.createStatement()) {
      s.execute("CREATE TABLE jb (id int PRIMARY KEY, n int)");
    }
    c.setAutoCommit(false);
    try (PreparedStatement p = c.prepareStatement("INSERT INTO jb VALUES (?, ?)")) {
      for (int n = 0; n < 500; n++) {
        p.setInt(1, n);
        p.setInt(2, n * n);
        p.addBatch();
      }
      same("batch", 500, p.executeBatch().length);
    }
    c.commit();
    c.setAutoCommit(true);
    System.out.println("ok batch");
  }

  static void fetchSize(Connection c) throws SQLException {
    c.setAutoCommit(false);
    try (PreparedStatement p = c.prepareStatement("SELECT id FROM jb ORDER BY id")) {
      p.setFetchSize(37);
      int count = 0;
      try (ResultSet r = p.executeQuery()) {
        while (r.next()) {
          same("id", count++, r.getInt(1));
        }
      }
      same("rows", 500, count);
    }
    c.commit();
    c.setAutoCommit(true);
    System.out.println("ok fetch size");
  }

  static void copy(Connection c) throws Exception {
    CopyManager copy = c.unwrap(PGConnection.class).getCopyAPI();
    long in = copy.copyIn("COPY jb FROM STDIN WITH (FORMAT csv)", new StringReader("1000,1\n1001,\n"));
    same("copied in", 2L, in);
    StringWriter out = new StringWriter();
    copy.copyOut("COPY (SELECT * FROM jb WHERE id >= 1000 ORDER BY id) TO STDOUT", out);
    same("copied out", "1000\t1\n1001\t\\N\n", out.toString());
    System.out.println("ok copy");
  }

  static void errors(Connection c) throws SQLException {
    String[][] cases = {
      {"INSERT INTO jb VALUES (1, 1)", "23505"}, {"SELECT 1/0", "22012"}, {"SELECT * FROM nowhere", "42P01"},
      {"SELECT 'x'::int", "22P02"}, {"SELEC 1", "42601"}, {"PREPARE TRANSACTION 'x'", "0A000"},
    };
    for (String[] one : cases) {
      try (Statement s = c.createStatement()) {
        s.execute(one[0]);
        throw new AssertionError(one[0] + " should have failed");
      } catch (SQLException error) {
        same(one[0], one[1], error.getSQLState());
      }
    }
    System.out.println("ok errors");
  }

  static void cancel(Connection c) throws Exception {
    try (Statement s = c.createStatement()) {
      s.setQueryTimeout(1);
      long started = System.nanoTime();
      try {
        s.execute("SELECT pg_sleep(30)");
        throw new AssertionError("the sleep should have been cancelled");
      } catch (SQLException error) {
        same("cancel", "57014", error.getSQLState());
      }
      if (System.nanoTime() - started > 10_000_000_000L) {
        throw new AssertionError("the cancel took too long");
      }
    }
    System.out.println("ok cancel");
  }

  static void metadata(Connection c) throws SQLException {
    DatabaseMetaData m = c.getMetaData();
    same("product", "PostgreSQL", m.getDatabaseProductName());
    try (ResultSet r = m.getTables(null, "public", "jb", new String[] {"TABLE"})) {
      same("table", true, r.next());
      same("name", "jb", r.getString("TABLE_NAME"));
    }
    try (ResultSet r = m.getColumns(null, "public", "jb", "%")) {
      same("first column", true, r.next());
      same("column", "id", r.getString("COLUMN_NAME"));
      same("type", "int4", r.getString("TYPE_NAME"));
    }
    try (ResultSet r = m.getPrimaryKeys(null, "public", "jb")) {
      same("key", true, r.next());
      same("key column", "id", r.getString("COLUMN_NAME"));
    }
    try (ResultSet r = m.getIndexInfo(null, "public", "jb", true, true)) {
      same("index", true, r.next());
      same("index name", "jb_pkey", r.getString("INDEX_NAME"));
    }
    try (ResultSet r = m.getSchemas()) {
      same("schemas", true, r.next());
    }
    System.out.println("ok metadata");
  }

  static void savepoint(Connection c) throws SQLException {
    c.setAutoCommit(false);
    c.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
    try (Statement s = c.createStatement()) {
      s.execute("INSERT INTO jb VALUES (2000, 1)");
      java.sql.Savepoint point = c.setSavepoint();
      try {
        s.execute("INSERT INTO jb VALUES (2000, 2)");
        throw new AssertionError("duplicate");
      } catch (SQLException error) {
        same("duplicate", "23505", error.getSQLState());
      }
      c.rollback(point);
      s.execute("INSERT INTO jb VALUES (2001, 1)");
    }
    c.commit();
    c.setAutoCommit(true);
    try (Statement s = c.createStatement(); ResultSet r = s.executeQuery("SELECT count(*) FROM jb WHERE id >= 2000")) {
      r.next();
      same("kept", 2, r.getInt(1));
    }
    System.out.println("ok savepoint");
  }

  static void callable(Connection c) throws SQLException {
    try (Statement s = c.createStatement()) {
      s.execute("DROP FUNCTION IF EXISTS jb_area(int, int)");
      s.execute("CREATE FUNCTION jb_area(w int, h int) RETURNS int LANGUAGE sql AS 'SELECT w * h'");
    }
    for (String call : new String[] {"{? = call jb_area(?, ?)}", "{? = call pg_catalog.mod(?, ?)}"}) {
      try (java.sql.CallableStatement s = c.prepareCall(call)) {
        s.registerOutParameter(1, java.sql.Types.INTEGER);
        s.setInt(2, 7);
        s.setInt(3, 6);
        s.execute();
        same(call, call.contains("jb_area") ? 42 : 1, s.getInt(1));
      }
    }
    try (Statement s = c.createStatement()) {
      s.execute("DROP FUNCTION jb_area(int, int)");
    }
    System.out.println("ok callable");
  }

  static void largeObjects(Connection c) throws Exception {
    byte[] sent = new byte[100_000];
    for (int i = 0; i < sent.length; i++) {
      sent[i] = (byte) (i % 251);
    }
    c.setAutoCommit(false);
    org.postgresql.largeobject.LargeObjectManager manager = c.unwrap(org.postgresql.PGConnection.class).getLargeObjectAPI();
    long oid = manager.createLO();
    try (org.postgresql.largeobject.LargeObject object = manager.open(oid)) {
      try (java.io.OutputStream out = object.getOutputStream()) {
        out.write(sent);
      }
    }
    try (org.postgresql.largeobject.LargeObject object = manager.open(oid)) {
      same("size", sent.length, object.size());
      object.seek(-10, org.postgresql.largeobject.LargeObject.SEEK_END);
      same("told", sent.length - 10, object.tell());
      same("the end", true, java.util.Arrays.equals(java.util.Arrays.copyOfRange(sent, sent.length - 10, sent.length), object.read(100)));
      object.seek64(5_000_000_000L, org.postgresql.largeobject.LargeObject.SEEK_SET);
      same("far", 5_000_000_000L, object.tell64());
      object.seek(0);
      object.truncate(70_000);
      same("cut", 70_000, object.size());
    }
    try (Statement s = c.createStatement()) {
      s.execute("CREATE TABLE jb_lob (id int, content oid)");
    }
    try (PreparedStatement p = c.prepareStatement("INSERT INTO jb_lob VALUES (1, ?)")) {
      p.setBlob(1, new java.io.ByteArrayInputStream(sent), sent.length);
      p.executeUpdate();
    }
    c.commit();
    try (Statement s = c.createStatement(); ResultSet r = s.executeQuery("SELECT content FROM jb_lob")) {
      r.next();
      java.sql.Blob blob = r.getBlob(1);
      same("blob", (long) sent.length, blob.length());
      same("bytes", true, java.util.Arrays.equals(sent, blob.getBytes(1, sent.length)));
    }
    manager.delete(oid);
    c.commit();
    try {
      manager.open(oid);
      throw new AssertionError("gone");
    } catch (SQLException error) {
      same("gone", "42704", error.getSQLState());
    }
    c.rollback();
    try (Statement s = c.createStatement()) {
      s.execute("SELECT lo_unlink(content) FROM jb_lob; DROP TABLE jb_lob");
    }
    c.commit();
    c.setAutoCommit(true);
    System.out.println("ok large objects");
  }
}
