/* What programs in C do with libpq: parameters in both formats, pipelines, single rows, COPY, notices, cancel, chunks of a portal.
   Prints what it gets, to be compared with what it gets from PostgreSQL. Takes an address. */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <libpq-fe.h>
#include <libpq/libpq-fs.h>

static PGconn *conn;

static void step(const char *name) { printf("== %s\n", name); }

static void notice(void *arg, const PGresult *result)
{
    (void) arg;
    printf("notice %s %s %s\n", PQresultErrorField(result, PG_DIAG_SEVERITY), PQresultErrorField(result, PG_DIAG_SQLSTATE), PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY));
}

static const char *field(const PGresult *result, int code)
{
    const char *text = PQresultErrorField(result, code);
    return text ? text : "-";
}

/* Print a result and free it; return 0 where there was none. */
static int told(PGresult *result)
{
    if (!result) {
        printf("none\n");
        return 0;
    }
    printf("%s [%s] oid %u; ", PQresStatus(PQresultStatus(result)), PQcmdStatus(result), PQoidValue(result));
    if (PQresultStatus(result) == PGRES_FATAL_ERROR) {
        static const int codes[] = {PG_DIAG_SEVERITY_NONLOCALIZED, PG_DIAG_SQLSTATE, PG_DIAG_MESSAGE_PRIMARY, PG_DIAG_MESSAGE_DETAIL, PG_DIAG_MESSAGE_HINT, PG_DIAG_STATEMENT_POSITION, PG_DIAG_CONTEXT, PG_DIAG_SCHEMA_NAME, PG_DIAG_TABLE_NAME, PG_DIAG_COLUMN_NAME, PG_DIAG_DATATYPE_NAME, PG_DIAG_CONSTRAINT_NAME};
        for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
            printf("%s|", field(result, codes[i]));
    }
    for (int f = 0; f < PQnfields(result); f++)
        printf("%s:%u:%d:%d:%d:%d ", PQfname(result, f), PQftype(result, f), PQfmod(result, f), PQfsize(result, f), PQfformat(result, f), PQftablecol(result, f));
    printf("\n");
    for (int r = 0; r < PQntuples(result) && r < 5; r++) {
        for (int f = 0; f < PQnfields(result); f++) {
            if (PQgetisnull(result, r, f))
                printf("NULL ");
            else if (PQfformat(result, f))
                for (int i = 0; i < PQgetlength(result, r, f); i++)
                    printf("%02x%s", (unsigned char) PQgetvalue(result, r, f)[i], i + 1 == PQgetlength(result, r, f) ? " " : "");
            else
                printf("%s ", PQgetvalue(result, r, f));
        }
        printf("\n");
    }
    PQclear(result);
    return 1;
}

static void drain(void)
{
    PGresult *result;
    while ((result = PQgetResult(conn)))
        told(result);
}

int main(int argc, char **argv)
{
    (void) argc;
    conn = PQconnectdb(argv[1]);
    if (PQstatus(conn) != CONNECTION_OK) {
        fprintf(stderr, "%s", PQerrorMessage(conn));
        return 1;
    }
    PQclear(PQexec(conn, "SET client_min_messages = warning; DROP SCHEMA IF EXISTS libpq CASCADE; CREATE SCHEMA libpq; SET search_path = libpq; SET timezone = 'UTC'"));

    step("parameters and results in both formats");
    int number = (int) htonl(42);
    const char *values[] = {(char *) &number, "it's", NULL, "\0\xff"};
    int lengths[] = {4, 0, 0, 2}, formats[] = {1, 0, 0, 1};
    Oid types[] = {23, 0, 25, 17};
    for (int format = 0; format < 2; format++)
        told(PQexecParams(conn, "SELECT $1 + 1 AS n, $2::text, $3, $4, 1.50::numeric(6,2), '2024-02-29'::date, '2024-02-29 01:02:03.5+00'::timestamptz, '1 day'::interval, '{1,NULL}'::int[], true, '[1,5)'::int4range, '{\"a\": 1}'::jsonb, '9b2d0b8e-5d5c-4c3f-9a53-0a3b3a1b7c11'::uuid, 1.5::float8, '10.0.0.1'::inet", 4, types, values, lengths, formats, format));

    step("prepared statements and portals, described");
    told(PQexec(conn, "CREATE TABLE t (id serial PRIMARY KEY, name varchar(20) NOT NULL UNIQUE, n numeric(8,2) CHECK (n > 0))"));
    told(PQprepare(conn, "add", "INSERT INTO t (name, n) VALUES ($1, $2) RETURNING id, name", 0, NULL));
    PGresult *described = PQdescribePrepared(conn, "add");
    printf("%d parameters: %u %u\n", PQnparams(described), PQparamtype(described, 0), PQparamtype(described, 1));
    told(described);
    for (int i = 0; i < 3; i++) {
        char name[8], n[8];
        const char *both[] = {name, n};
        sprintf(name, "n%d", i);
        sprintf(n, "%d.5", i);
        told(PQexecPrepared(conn, "add", 2, both, NULL, NULL, 0));
    }
    told(PQexec(conn, "BEGIN; DECLARE c CURSOR FOR SELECT * FROM t ORDER BY id"));
    told(PQdescribePortal(conn, "c"));
    told(PQexec(conn, "FETCH 2 FROM c; COMMIT"));
    told(PQdescribePrepared(conn, "nothing"));
    told(PQdescribePortal(conn, "nothing"));

    step("errors");
    static const char *const broken[] = {"INSERT INTO t (name) VALUES ('n1')", "INSERT INTO t (name) VALUES (NULL)", "INSERT INTO t (name, n) VALUES ('x', -1)", "SELECT nme FROM t", "SELEC", "SELECT 'x'::int", "SELECT 1; SELECT 1/0; SELECT 2", "", "SELECT 1 AS a; SELECT 2 AS b"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        told(PQexec(conn, broken[i]));
    PQsetErrorVerbosity(conn, PQERRORS_SQLSTATE);
    PQclear(PQexec(conn, "SELECT nme FROM t"));
    printf("%s", PQerrorMessage(conn));
    PQsetErrorVerbosity(conn, PQERRORS_DEFAULT);

    step("several results, single rows, notices");
    PQsetNoticeReceiver(conn, notice, NULL);
    PQsendQuery(conn, "SET client_min_messages = notice; SELECT 1; DROP TABLE IF EXISTS nowhere; SELECT 2; SELECT 1/0; SELECT 3");
    drain();
    PQsendQueryParams(conn, "SELECT g, g * 2 FROM generate_series(1, 2000) g", 0, NULL, NULL, NULL, NULL, 1);
    PQsetSingleRowMode(conn);
    PGresult *result;
    int singles = 0;
    while ((result = PQgetResult(conn))) {
        singles += PQresultStatus(result) == PGRES_SINGLE_TUPLE;
        if (PQresultStatus(result) != PGRES_SINGLE_TUPLE)
            printf("%s %s\n", PQresStatus(PQresultStatus(result)), PQcmdStatus(result));
        PQclear(result);
    }
    printf("%d rows\n", singles);
    PQsendQuery(conn, "SELECT 10 / (3 - g) FROM generate_series(1, 5) g");
    PQsetSingleRowMode(conn);
    while ((result = PQgetResult(conn))) /* how many rows come before the error is not promised */
        if (PQresultStatus(result) == PGRES_SINGLE_TUPLE)
            PQclear(result);
        else
            told(result);

    step("pipelines");
    PQenterPipelineMode(conn);
    const char *name[] = {"piped"}, *zero[] = {"0"}, *five[] = {"5"};
    PQsendQueryParams(conn, "INSERT INTO t (name) VALUES ($1) RETURNING id", 1, NULL, name, NULL, NULL, 0);
    PQsendPrepare(conn, "later", "SELECT $1::int * 2", 0, NULL);
    PQsendQueryPrepared(conn, "later", 1, five, NULL, NULL, 1);
    PQsendDescribePrepared(conn, "later");
    PQpipelineSync(conn);
    PQsendQueryParams(conn, "INSERT INTO t (name) VALUES ('undone')", 0, NULL, NULL, NULL, NULL, 0);
    PQsendQueryParams(conn, "SELECT 1 / $1::int", 1, NULL, zero, NULL, NULL, 0);
    PQsendQueryParams(conn, "SELECT 'skipped'", 0, NULL, NULL, NULL, NULL, 0);
    PQpipelineSync(conn);
    PQsendQueryParams(conn, "SELECT name FROM t ORDER BY id", 0, NULL, NULL, NULL, NULL, 0);
    PQsendFlushRequest(conn);
    PQflush(conn);
    for (int syncs = 0, nones = 0; syncs < 2 && nones < 3;) {
        result = PQgetResult(conn);
        nones = result ? 0 : nones + 1;
        syncs += result && PQresultStatus(result) == PGRES_PIPELINE_SYNC;
        printf("%d ", (int) PQpipelineStatus(conn));
        told(result);
    }
    told(PQgetResult(conn));
    told(PQgetResult(conn));
    PQsendQueryParams(conn, "BEGIN", 0, NULL, NULL, NULL, NULL, 0);
    PQsendQueryParams(conn, "SELECT nothing", 0, NULL, NULL, NULL, NULL, 0);
    PQpipelineSync(conn);
    for (int syncs = 0; !syncs;) {
        result = PQgetResult(conn);
        syncs = result && PQresultStatus(result) == PGRES_PIPELINE_SYNC;
        told(result);
    }
    printf("in a transaction: %d\n", (int) PQtransactionStatus(conn));
    PQsendQueryParams(conn, "ROLLBACK", 0, NULL, NULL, NULL, NULL, 0);
    PQpipelineSync(conn);
    for (int syncs = 0; !syncs;) {
        result = PQgetResult(conn);
        syncs = result && PQresultStatus(result) == PGRES_PIPELINE_SYNC;
        told(result);
    }
    for (int i = 0; i < 500; i++)
        PQsendQueryPrepared(conn, "later", 1, five, NULL, NULL, 0);
    PQpipelineSync(conn);
    int answers = 0;
    for (;;) {
        result = PQgetResult(conn);
        if (result && PQresultStatus(result) == PGRES_PIPELINE_SYNC)
            break;
        answers += result && PQresultStatus(result) == PGRES_TUPLES_OK;
        PQclear(result);
    }
    PQclear(result);
    printf("%d answers, left: %d\n", answers, PQexitPipelineMode(conn));

    step("COPY");
    told(PQexec(conn, "COPY t (name, n) FROM STDIN"));
    PQputCopyData(conn, "c1\t1\nc2", 7);
    PQputCopyData(conn, "\t\\N\n", 4);
    printf("%d\n", PQputCopyEnd(conn, NULL));
    drain();
    told(PQexec(conn, "COPY t (name) FROM STDIN"));
    PQputCopyData(conn, "c3\n", 3);
    PQputCopyEnd(conn, "given up");
    drain();
    told(PQexec(conn, "COPY t (name, n) FROM STDIN CSV"));
    PQputCopyData(conn, "c4,abc\n", 7);
    PQputCopyEnd(conn, NULL);
    drain();
    PQclear(PQexec(conn, "COPY (SELECT name, n FROM t ORDER BY id) TO STDOUT BINARY"));
    char *line;
    int size, chunks = 0, bytes = 0;
    while ((size = PQgetCopyData(conn, &line, 0)) > 0) {
        chunks++;
        bytes += size;
        PQfreemem(line);
    }
    printf("%d chunks, %d bytes\n", chunks, bytes);
    drain();

    step("cancel, notifications, status");
    PQsendQuery(conn, "SELECT pg_sleep(20)");
    char said[256];
    PGcancel *cancel = PQgetCancel(conn);
    printf("%d\n", PQcancel(cancel, said, sizeof said));
    PQfreeCancel(cancel);
    drain();
    told(PQexec(conn, "LISTEN channel"));
    told(PQexec(conn, "NOTIFY channel, 'payload'"));
    PGnotify *got = PQnotifies(conn);
    printf("%s %s %d\n", got ? got->relname : "-", got ? got->extra : "-", got && got->be_pid == PQbackendPID(conn));
    PQfreemem(got);
    static const char *const parameters[] = {"server_encoding", "client_encoding", "application_name", "is_superuser", "session_authorization", "DateStyle", "IntervalStyle", "TimeZone", "integer_datetimes", "standard_conforming_strings", "default_transaction_read_only", "in_hot_standby", "search_path"};
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++)
        printf("%s=%s ", parameters[i], PQparameterStatus(conn, parameters[i]) ? PQparameterStatus(conn, parameters[i]) : "-");
    printf("\n%d %d\n", PQserverVersion(conn) / 10000, PQprotocolVersion(conn));
    PQreset(conn);
    printf("%d %d\n", (int) PQstatus(conn), (int) PQtransactionStatus(conn));

    step("large objects, functions by oid");
    char piece[4096];
    memset(piece, 'p', sizeof piece);
    told(PQexec(conn, "SELECT count(lo_unlink(oid)) >= 0 FROM pg_largeobject_metadata"));
    printf("%u %u ", lo_create(conn, 4242), lo_create(conn, 4242));
    printf("%s", PQerrorMessage(conn));
    told(PQexec(conn, "BEGIN"));
    int fd = lo_open(conn, 4242, INV_READ | INV_WRITE);
    for (int i = 0; i < 5; i++)
        printf("%d ", lo_write(conn, fd, piece, sizeof piece - i));
    printf("%d %d\n", lo_tell(conn, fd), lo_lseek(conn, fd, -7, SEEK_END));
    printf("%d %d ", lo_read(conn, fd, piece, 100), lo_truncate(conn, fd, 10000));
    printf("%d %lld ", lo_lseek(conn, fd, 0, SEEK_END), (long long) lo_lseek64(conn, fd, 3000000000LL, SEEK_SET));
    printf("%lld %d %lld\n", (long long) lo_tell64(conn, fd), lo_truncate64(conn, fd, 3000000001LL), (long long) lo_lseek64(conn, fd, 0, SEEK_END));
    printf("%d %d ", lo_close(conn, fd), lo_close(conn, fd));
    printf("%s%d %d ", PQerrorMessage(conn), (int) PQtransactionStatus(conn), lo_open(conn, 4242, INV_READ));
    printf("%s", PQerrorMessage(conn));
    told(PQexec(conn, "ROLLBACK"));
    told(PQexec(conn, "SELECT count(*) FROM pg_largeobject"));
    char path[] = "/tmp/holdfast-libpq-XXXXXX", bytes_of[] = "of a file";
    FILE *file = fdopen(mkstemp(path), "w");
    fwrite(bytes_of, 1, sizeof bytes_of, file);
    fclose(file);
    told(PQexec(conn, "BEGIN"));
    printf("%d %u ", lo_import(conn, path) > 16383, lo_import_with_oid(conn, path, 4243));
    told(PQexec(conn, "COMMIT; BEGIN"));
    printf("%d ", lo_export(conn, 4243, path));
    told(PQexec(conn, "COMMIT"));
    file = fopen(path, "r");
    printf("%d %s\n", (int) fread(piece, 1, sizeof piece, file), piece);
    fclose(file);
    remove(path);
    printf("%d %d ", lo_unlink(conn, 4243), lo_unlink(conn, 4243));
    printf("%s", PQerrorMessage(conn));
    PQArgBlock args[2] = {{.isint = 1, .len = 4, .u.integer = 40}, {.isint = 1, .len = 4, .u.integer = 2}};
    int value = 0, length = 0;
    told(PQfn(conn, 177, &value, &length, 1, args, 2));
    printf("%d %d\n", value, length);
    told(PQfn(conn, 154, &value, &length, 1, (PQArgBlock[]) {{.isint = 1, .len = 4, .u.integer = 1}, {.isint = 1, .len = 4, .u.integer = 0}}, 2));
    told(PQexec(conn, "SELECT count(lo_unlink(oid)) FROM pg_largeobject_metadata"));

    step("the end");
    told(PQexec(conn, "SET client_min_messages = warning; DROP SCHEMA libpq CASCADE"));
    PQfinish(conn);
    return 0;
}
