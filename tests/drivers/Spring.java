// A small Spring application with Hibernate (both Debian's): it makes its tables from its classes, checks them, uses them.
// java Spring jdbc:postgresql://host:port/database  prints "ok <step>" lines; status 1 if a step failed.

import java.math.BigDecimal;
import java.sql.Timestamp;
import java.sql.Types;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.List;
import java.util.Map;
import javax.persistence.*;
import org.hibernate.HibernateException;
import org.hibernate.LockOptions;
import org.hibernate.ScrollMode;
import org.hibernate.ScrollableResults;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;
import org.hibernate.criterion.Projections;
import org.hibernate.criterion.Restrictions;
import org.hibernate.tool.hbm2ddl.SchemaExport;
import org.hibernate.tool.hbm2ddl.SchemaUpdate;
import org.hibernate.tool.hbm2ddl.SchemaValidator;
import org.springframework.dao.CannotAcquireLockException;
import org.springframework.dao.DataIntegrityViolationException;
import org.springframework.dao.DuplicateKeyException;
import org.springframework.jdbc.core.BeanPropertyRowMapper;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.core.SqlOutParameter;
import org.springframework.jdbc.core.SqlParameter;
import org.springframework.jdbc.core.namedparam.MapSqlParameterSource;
import org.springframework.jdbc.core.namedparam.NamedParameterJdbcTemplate;
import org.springframework.jdbc.core.simple.SimpleJdbcCall;
import org.springframework.jdbc.core.simple.SimpleJdbcInsert;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.jdbc.support.GeneratedKeyHolder;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.support.TransactionTemplate;

public class Spring {
  enum State { OPEN, PAID }

  @Entity(name = "Customer") @Table(name = "spring_customer", uniqueConstraints = @UniqueConstraint(columnNames = "email"))
  public static class Customer {
    @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
    @Column(length = 60, nullable = false) String email;
    @Version int version;
    @Temporal(TemporalType.TIMESTAMP) Date since = new Date(0);
    @OneToMany(mappedBy = "customer", cascade = CascadeType.ALL, orphanRemoval = true) List<Order> orders = new ArrayList<Order>();
    @ElementCollection @CollectionTable(name = "spring_phone") @Column(name = "phone") List<String> phones = new ArrayList<String>();
    Customer() {}
    Customer(String email) { this.email = email; }
  }

  @Entity(name = "Purchase") @Table(name = "spring_order")
  public static class Order {
    @Id @GeneratedValue(generator = "orders") @SequenceGenerator(name = "orders", sequenceName = "spring_order_seq", allocationSize = 10)
    Long id;
    @ManyToOne(fetch = FetchType.LAZY, optional = false) @JoinColumn(name = "customer_id") Customer customer;
    @Enumerated(EnumType.STRING) State state = State.OPEN;
    @Column(precision = 12, scale = 2) BigDecimal total = BigDecimal.ZERO;
    boolean gift;
    double weight = 1.5;
    byte[] label = {1, 2, 0, 3};
    @Temporal(TemporalType.DATE) Date day = new Date(0);
    @Column(columnDefinition = "text") String note;
    @ManyToMany @JoinTable(name = "spring_order_tag") List<Tag> tags = new ArrayList<Tag>();
    Order() {}
    Order(Customer customer, String total) { this.customer = customer; this.total = new BigDecimal(total); }
  }

  @Entity @Table(name = "spring_tag")
  public static class Tag {
    @Id @Column(length = 20) String name;
    Tag() {}
    Tag(String name) { this.name = name; }
  }

  @Entity(name = "Payment") @Table(name = "spring_payment") @Inheritance(strategy = InheritanceType.JOINED)
  public static class Payment {
    @Id @GeneratedValue(strategy = GenerationType.TABLE) Long id;
    int cents;
  }

  @Entity(name = "CardPayment") @Table(name = "spring_card_payment")
  public static class CardPayment extends Payment { String card = "4242"; }

  public static class Line {
    private String email;
    private BigDecimal total;
    public void setEmail(String email) { this.email = email; }
    public void setTotal(BigDecimal total) { this.total = total; }
  }

  interface Body { void run() throws Exception; }
  static boolean failed = false;

  static void step(String name, Body body) {
    try { body.run(); System.out.println("ok " + name); }
    catch (Throwable error) { failed = true; System.out.println("FAILED " + name + ": " + error); error.printStackTrace(System.out); }
  }

  static void same(Object got, Object expected) {
    if (!expected.equals(got)) throw new AssertionError("got " + got + ", expected " + expected);
  }

  static <T extends Throwable> T raised(Class<T> kind, Body body) {
    try { body.run(); } catch (Throwable error) { if (kind.isInstance(error)) return kind.cast(error); throw new AssertionError("not " + kind, error); }
    throw new AssertionError("no " + kind);
  }

  public static void main(String[] arguments) {
    DriverManagerDataSource source = new DriverManagerDataSource(arguments[0], "postgres", "");
    JdbcTemplate jdbc = new JdbcTemplate(source);
    Configuration mapping = new Configuration()
        .setProperty("hibernate.connection.url", arguments[0]).setProperty("hibernate.connection.username", "postgres")
        .setProperty("hibernate.connection.driver_class", "org.postgresql.Driver")
        .setProperty("hibernate.dialect", "org.hibernate.dialect.PostgreSQLDialect")
        .setProperty("hibernate.jdbc.batch_size", "20").setProperty("hibernate.order_inserts", "true")
        .setProperty("hibernate.temp.use_jdbc_metadata_defaults", "true");
    for (Class<?> kind : new Class<?>[] {Customer.class, Order.class, Tag.class, Payment.class, CardPayment.class}) mapping.addAnnotatedClass(kind);
    SessionFactory[] factory = new SessionFactory[1];

    step("hbm2ddl: create, validate, update", () -> {
      SchemaExport export = new SchemaExport(mapping);
      export.create(false, true);
      same(export.getExceptions().stream().filter(e -> !e.toString().contains("does not exist")).count(), 0L);
      new SchemaValidator(mapping).validate();
      jdbc.execute("ALTER TABLE spring_order DROP COLUMN note");
      raised(HibernateException.class, () -> new SchemaValidator(mapping).validate());
      SchemaUpdate update = new SchemaUpdate(mapping);
      update.execute(false, true);
      same(update.getExceptions().size(), 0);
      new SchemaValidator(mapping).validate();
      factory[0] = mapping.buildSessionFactory();
    });

    step("a graph of objects is stored and found", () -> {
      Session session = factory[0].openSession();
      session.beginTransaction();
      Tag red = new Tag("red");
      session.save(red);
      for (int c = 0; c < 5; c++) {
        Customer customer = new Customer("c" + c + "@example.com");
        customer.phones.addAll(Arrays.asList("1" + c, "2" + c));
        for (int o = 0; o <= c; o++) { Order order = new Order(customer, o + ".25"); order.tags.add(red); customer.orders.add(order); }
        session.save(customer);
      }
      CardPayment payment = new CardPayment();
      payment.cents = 250;
      session.save(payment);
      session.getTransaction().commit();
      session.clear();
      Customer found = (Customer) session.createQuery("from Customer where email like :e").setString("e", "c3%").uniqueResult();
      same(found.orders.size(), 4);
      same(found.phones.size(), 2);
      Order order = found.orders.get(0);
      same(Arrays.toString(order.label), "[1, 2, 0, 3]");
      same(order.state, State.OPEN);
      same(order.tags.get(0).name, "red");
      same(((CardPayment) session.createQuery("from Payment").uniqueResult()).card, "4242");
      session.close();
    });

    step("queries: HQL, criteria, pages, scrolling, bulk", () -> {
      Session session = factory[0].openSession();
      session.beginTransaction();
      List<?> sums = session.createQuery("select c.email, sum(o.total), count(*) from Purchase o join o.customer c where o.total > 0 group by c.email "
          + "having count(*) > 1 order by 2 desc, c.email").list();
      same(Arrays.toString((Object[]) sums.get(0)), "[c4@example.com, 11.25, 5]");
      same(session.createQuery("from Purchase o order by o.id").setFirstResult(3).setMaxResults(4).list().size(), 4);
      same(session.createCriteria(Order.class).createAlias("customer", "c").add(Restrictions.ilike("c.email", "C2%"))
          .setProjection(Projections.rowCount()).uniqueResult(), 3L);
      same(session.createQuery("select year(o.day), coalesce(o.note, 'none'), cast(o.total as string), upper(o.customer.email) from Purchase o"
          + " where o.gift = false and exists elements(o.tags) and o.customer.since < current_timestamp()").list().size(), 15);
      same(session.createQuery("select c from Customer c left join fetch c.orders where size(c.phones) = 2").list().size(), 15);
      ScrollableResults scroll = session.createQuery("select o.total from Purchase o order by o.total, o.id").setFetchSize(4).scroll(ScrollMode.SCROLL_INSENSITIVE);
      scroll.last();
      same(scroll.getRowNumber(), 14);
      scroll.first();
      same(scroll.get(0), new BigDecimal("0.25"));
      scroll.close();
      same(session.createQuery("update Purchase set state = 'PAID' where total > 2").executeUpdate(), 6);
      same(session.createQuery("update CardPayment set cents = cents + 1 where card = '4242'").executeUpdate(), 1);
      same(session.createSQLQuery("SELECT {o.*} FROM spring_order o WHERE state = :s").addEntity("o", Order.class).setString("s", "PAID").list().size(), 6);
      session.getTransaction().commit();
      session.close();
    });

    step("versions and locks", () -> {
      Session one = factory[0].openSession(), two = factory[0].openSession();
      one.beginTransaction();
      two.beginTransaction();
      Customer mine = (Customer) one.get(Customer.class, 1L), theirs = (Customer) two.get(Customer.class, 1L);
      mine.email = "mine@example.com";
      one.getTransaction().commit();
      theirs.email = "theirs@example.com";
      raised(HibernateException.class, () -> two.getTransaction().commit());  // a stale version, or 40001 where levels are all serializable
      two.getTransaction().rollback();
      one.close();
      two.close();
      Session locking = factory[0].openSession();
      locking.beginTransaction();
      Customer locked = (Customer) locking.get(Customer.class, 1L, LockOptions.UPGRADE);
      same(locked.version, 1);
      raised(CannotAcquireLockException.class, () -> jdbc.queryForList("SELECT 1 FROM spring_customer WHERE id = 1 FOR UPDATE NOWAIT"));
      same(jdbc.queryForList("SELECT id FROM spring_customer ORDER BY id FOR UPDATE SKIP LOCKED").size(), 4);
      locking.getTransaction().commit();
      locking.close();
    });

    step("Spring's templates", () -> {
      jdbc.execute("DROP TABLE IF EXISTS spring_item; CREATE TABLE spring_item (id serial PRIMARY KEY, name text UNIQUE, price numeric(8,2) CHECK (price >= 0), at timestamptz DEFAULT now())");
      SimpleJdbcInsert insert = new SimpleJdbcInsert(jdbc).withTableName("spring_item").usingColumns("name", "price").usingGeneratedKeyColumns("id");
      same(insert.executeAndReturnKey(new MapSqlParameterSource("name", "pen").addValue("price", new BigDecimal("1.50"))).intValue(), 1);
      GeneratedKeyHolder keys = new GeneratedKeyHolder();
      new NamedParameterJdbcTemplate(jdbc).update("INSERT INTO spring_item (name, price) VALUES (:name, :price)",
          new MapSqlParameterSource("name", "ink").addValue("price", 2), keys, new String[] {"id", "at"});
      same(keys.getKeys().get("id"), 2);
      same(keys.getKeys().get("at") instanceof Timestamp, true);
      List<Object[]> rows = new ArrayList<Object[]>();
      for (int i = 0; i < 50; i++) rows.add(new Object[] {"item " + i, i});
      same(jdbc.batchUpdate("INSERT INTO spring_item (name, price) VALUES (?, ?)", rows).length, 50);
      same(new NamedParameterJdbcTemplate(jdbc).queryForObject("SELECT count(*) FROM spring_item WHERE name IN (:names)",
          Map.of("names", Arrays.asList("pen", "ink", "item 7")), Integer.class), 3);
      same(jdbc.query("SELECT name AS email, price AS total FROM spring_item WHERE price > ? ORDER BY 2", new BeanPropertyRowMapper<Line>(Line.class), 45).size(), 4);
      raised(DuplicateKeyException.class, () -> jdbc.update("INSERT INTO spring_item (name) VALUES ('pen')"));
      raised(DataIntegrityViolationException.class, () -> jdbc.update("INSERT INTO spring_item (name, price) VALUES ('x', -1)"));
      raised(org.springframework.jdbc.BadSqlGrammarException.class, () -> jdbc.queryForList("SELECT nope FROM spring_item"));
      jdbc.execute("CREATE OR REPLACE FUNCTION spring_priced(lowest numeric) RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM spring_item WHERE price >= lowest'");
      same(new SimpleJdbcCall(jdbc).withFunctionName("spring_priced").withoutProcedureColumnMetaDataAccess()
          .declareParameters(new SqlOutParameter("n", Types.BIGINT), new SqlParameter("lowest", Types.NUMERIC))
          .executeFunction(Long.class, new BigDecimal("48")), 2L);
    });

    step("Spring's transactions", () -> {
      DataSourceTransactionManager manager = new DataSourceTransactionManager(source);
      TransactionTemplate outer = new TransactionTemplate(manager), nested = new TransactionTemplate(manager);
      nested.setPropagationBehavior(TransactionDefinition.PROPAGATION_NESTED);
      outer.setIsolationLevel(TransactionDefinition.ISOLATION_SERIALIZABLE);
      outer.setTimeout(30);
      int before = jdbc.queryForObject("SELECT count(*) FROM spring_item", Integer.class);
      outer.execute(status -> {
        jdbc.update("INSERT INTO spring_item (name) VALUES ('kept')");
        try {
          nested.execute(inner -> jdbc.update("INSERT INTO spring_item (name) VALUES ('kept')"));
        } catch (DuplicateKeyException expected) { same(inner(expected), "23505"); }
        return jdbc.update("UPDATE spring_item SET price = 1 WHERE name = 'kept'");
      });
      same(jdbc.queryForObject("SELECT count(*) FROM spring_item", Integer.class), before + 1);
      outer.execute(status -> { status.setRollbackOnly(); return jdbc.update("DELETE FROM spring_item"); });
      same(jdbc.queryForObject("SELECT count(*) FROM spring_item", Integer.class), before + 1);
      TransactionTemplate reading = new TransactionTemplate(manager);
      reading.setReadOnly(true);
      reading.execute(status -> raised(Exception.class, () -> jdbc.update("DELETE FROM spring_item")));
    });

    step("hbm2ddl: drop", () -> {
      jdbc.execute("DROP FUNCTION spring_priced(numeric); DROP TABLE spring_item");
      factory[0].close();
      SchemaExport export = new SchemaExport(mapping);
      export.drop(false, true);
      same(export.getExceptions().size(), 0);
      same(jdbc.queryForObject("SELECT count(*) FROM pg_class WHERE relname LIKE 'spring_%'", Integer.class), 0);
    });
    System.exit(failed ? 1 : 0);
  }

  static String inner(DuplicateKeyException error) { return ((java.sql.SQLException) error.getMostSpecificCause()).getSQLState(); }
}
