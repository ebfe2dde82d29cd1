# Perl's DBI with DBD::Pg: values, prepared statements, COPY, savepoints, catalog methods, errors, notifications, async queries.
use strict;
use warnings;
use DBI;
use DBD::Pg qw(:pg_types :async);

my ($host, $port, $database) = $ARGV[0] =~ m{@([^:/]+):(\d+)/(\w+)} or die "an address";
my $failed = 0;
my $dbh = DBI->connect("dbi:Pg:host=$host;port=$port;dbname=$database", "postgres", "", { RaiseError => 1, PrintError => 0, AutoCommit => 1 });
$dbh->{PrintWarn} = 0;

sub step {
    my ($name, $body) = @_;
    if (eval { $body->(); 1 }) { print "ok $name\n" } else { $failed = 1; print "FAILED $name: $@\n" }
}

sub same {
    my ($got, $expected) = @_;
    my ($g, $e) = map { join "|", map { ref $_ ? "[" . join(",", @$_) . "]" : defined $_ ? $_ : "NULL" } @$_ } $got, $expected;
    die "got $g, expected $e at line " . (caller)[2] . "\n" if $g ne $e;
}

step "values" => sub {
    same([$dbh->selectrow_array("SELECT ?::int, ?::text, ?::int[], ?::bool, ?::numeric, NULL", undef, 5, "snow", [1, 2], 1, "1.50")], [5, "snow", [1, 2], 1, "1.50", undef]);
    my $sth = $dbh->prepare("SELECT ?::bytea");
    $sth->bind_param(1, "\0\xff", { pg_type => PG_BYTEA });
    $sth->execute;
    same([unpack "H*", $sth->fetchrow_array], ["00ff"]);
};

step "statements" => sub {
    $dbh->do("DROP TABLE IF EXISTS perl_child, perl_made");
    $dbh->do("CREATE TABLE perl_made (id serial PRIMARY KEY, name varchar(20) NOT NULL UNIQUE, price numeric(8,2) DEFAULT 1)");
    $dbh->do("CREATE TABLE perl_child (made int REFERENCES perl_made ON DELETE CASCADE, note text)");
    $dbh->begin_work;
    my $sth = $dbh->prepare("INSERT INTO perl_made (name, price) VALUES (?, ?)");
    $sth->execute("n$_", $_ / 4) for 1 .. 20;
    $dbh->commit;
    same([$dbh->last_insert_id(undef, undef, "perl_made", undef)], [20]);
    same([$dbh->do("UPDATE perl_made SET price = price + 1 WHERE id > ?", undef, 15)], [5]);
    my $tuples = $dbh->prepare("INSERT INTO perl_made (name) VALUES (?)")->execute_array({ ArrayTupleStatus => \my @status }, ["a", "b", "c"]);
    same([$tuples], [3]);
    same($dbh->selectcol_arrayref("SELECT name FROM perl_made WHERE id < 4 ORDER BY id"), ["n1", "n2", "n3"]);
    my $named = $dbh->selectall_hashref("SELECT id, name FROM perl_made", "id");
    same([$named->{2}{name}], ["n2"]);
};

step "columns of a result" => sub {
    my $sth = $dbh->prepare("SELECT id, name, price FROM perl_made WHERE id = 1");
    $sth->execute;
    same([@{ $sth->{NAME} }, @{ $sth->{pg_type} }, @{ $sth->{PRECISION} }], [qw(id name price int4 varchar numeric 4 24 8)]);
    $sth->finish;
};

step "savepoints and errors" => sub {
    $dbh->begin_work;
    $dbh->pg_savepoint("s");
    eval { $dbh->do("INSERT INTO perl_made (name) VALUES ('n1')") };
    same([$dbh->state, $dbh->pg_error_field("constraint")], ["23505", "perl_made_name_key"]);
    $dbh->pg_rollback_to("s");
    same([$dbh->selectrow_array("SELECT count(*) FROM perl_made")], [23]);
    $dbh->rollback;
};

step "COPY" => sub {
    $dbh->do("COPY perl_child FROM STDIN");
    $dbh->pg_putcopydata("$_\tnote $_\n") for 1 .. 3;
    $dbh->pg_putcopyend;
    $dbh->do("COPY (SELECT note FROM perl_child ORDER BY made) TO STDOUT");
    my @lines;
    while ($dbh->pg_getcopydata(\my $line) >= 0) { chomp $line; push @lines, $line }
    same(\@lines, ["note 1", "note 2", "note 3"]);
};

step "catalog" => sub {
    same([map { $_->[2] } @{ $dbh->table_info(undef, "public", "perl_%", "TABLE")->fetchall_arrayref }], ["perl_child", "perl_made"]);
    same([map { "$_->[3] $_->[5] $_->[6] $_->[17]" } @{ $dbh->column_info(undef, "public", "perl_made", "%")->fetchall_arrayref }], ["id integer 4 NO", "name character varying 20 NO", "price numeric 2,8 YES"]);
    same([$dbh->primary_key(undef, "public", "perl_made")], ["id"]);
    same([map { "$_->[2] $_->[3] $_->[6] $_->[7]" } @{ $dbh->foreign_key_info(undef, undef, undef, undef, "public", "perl_child")->fetchall_arrayref }], ["perl_made id perl_child made"]);
    my @indexes = map { "$_->[5] $_->[3]" } grep { defined $_->[5] } @{ $dbh->statistics_info(undef, "public", "perl_made", 0, 0)->fetchall_arrayref };
    same(\@indexes, ["perl_made_name_key 0", "perl_made_pkey 0"]);
    same([grep { /perl_made/ } $dbh->tables(undef, "public", "perl_made")], ["public.perl_made"]);
    die "no types" unless @{ $dbh->type_info_all } > 10;
};

step "notifications, asynchronous query, time-out" => sub {
    $dbh->do("LISTEN perl");
    $dbh->do("NOTIFY perl, 'hello'");
    my $note = $dbh->pg_notifies;
    same([$note->[0], $note->[2]], ["perl", "hello"]);
    $dbh->do("SELECT pg_sleep(60)", { pg_async => PG_ASYNC });
    $dbh->pg_cancel;
    $dbh->do("SET statement_timeout = 200");
    eval { $dbh->do("SELECT pg_sleep(60)") };
    same([$dbh->state], ["57014"]);
    $dbh->do("RESET statement_timeout");
    die "no ping" unless $dbh->ping;
};

$dbh->do("DROP TABLE perl_child, perl_made");
$dbh->disconnect;
exit $failed;
