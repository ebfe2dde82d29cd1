<?php
/* Laravel's database (schema builder, query builder, Eloquent) and Doctrine (DBAL's schema tools, ORM).
   Prints what it gets, to be compared with what it gets from PostgreSQL. Takes an address. */
error_reporting(E_ALL & ~E_WARNING & ~E_DEPRECATED & ~E_NOTICE);
require '/usr/share/php/Illuminate/Database/autoload.php';
require '/usr/share/php/Doctrine/ORM/autoload.php';

use Doctrine\DBAL\DriverManager;
use Doctrine\ORM\Configuration;
use Doctrine\ORM\EntityManager;
use Doctrine\ORM\Mapping\Driver\AttributeDriver;
use Doctrine\ORM\Mapping as ORM;
use Doctrine\ORM\Tools\SchemaTool;
use Illuminate\Database\Capsule\Manager as Capsule;
use Illuminate\Database\Eloquent\Model;
use Illuminate\Database\Eloquent\SoftDeletes;
use Illuminate\Database\Schema\Blueprint;

$at = parse_url($argv[1]);

function show($value): void
{
    echo json_encode($value, JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES | JSON_PARTIAL_OUTPUT_ON_ERROR), "\n";
}

function step(string $name, callable $body): void
{
    echo "== $name\n";
    try {
        $body();
    } catch (Throwable $e) {
        echo get_class($e), ": ", $e->getMessage(), "\n";
    }
}

function attempt(callable $body): void
{
    try {
        show($body());
    } catch (Throwable $e) {
        echo get_class($e), ": ", $e->getMessage(), "\n";
    }
}

$pdo = new PDO("pgsql:host={$at['host']};port={$at['port']};dbname=" . ltrim($at['path'], '/') . ";user=postgres");
$pdo->exec("SET client_min_messages = warning; DROP SCHEMA IF EXISTS laravel CASCADE; DROP SCHEMA IF EXISTS doctrine CASCADE; CREATE SCHEMA laravel");

$capsule = new Capsule();
$capsule->addConnection(['driver' => 'pgsql', 'host' => $at['host'], 'port' => $at['port'], 'database' => ltrim($at['path'], '/'), 'username' => 'postgres', 'password' => '', 'charset' => 'utf8', 'search_path' => 'laravel', 'schema' => 'laravel', 'timezone' => 'UTC', 'application_name' => 'laravel']);
$capsule->setAsGlobal();
$capsule->bootEloquent();
$db = $capsule->getConnection();
$schema = $db->getSchemaBuilder();

class User extends Model
{
    use SoftDeletes;

    protected $guarded = [];
    protected $casts = ['options' => 'array', 'active' => 'boolean', 'balance' => 'decimal:2'];

    public function posts()
    {
        return $this->hasMany(Post::class);
    }

    public function roles()
    {
        return $this->belongsToMany(Role::class)->withPivot('level')->withTimestamps();
    }
}

class Post extends Model
{
    protected $guarded = [];
    public $timestamps = false;

    public function user()
    {
        return $this->belongsTo(User::class);
    }
}

class Role extends Model
{
    protected $guarded = [];
    public $timestamps = false;
}

step("Laravel: the schema builder", function () use ($schema, $db) {
    $schema->create('users', function (Blueprint $t) {
        $t->id();
        $t->string('name', 60)->comment("who");
        $t->string('email')->unique();
        $t->boolean('active')->default(true);
        $t->decimal('balance', 10, 2)->default(0);
        $t->jsonb('options')->nullable();
        $t->enum('level', ['low', 'high'])->default('low');
        $t->uuid('key')->nullable();
        $t->ipAddress('ip')->nullable();
        $t->date('born')->nullable();
        $t->binary('photo')->nullable();
        $t->double('weight', 8, 2)->nullable();
        $t->char('code', 3)->nullable();
        $t->integer('doubled')->storedAs('id * 2');
        $t->softDeletesTz();
        $t->timestampsTz();
        $t->index(['active', 'level']);
    });
    $schema->create('posts', function (Blueprint $t) {
        $t->increments('id');
        $t->foreignId('user_id')->constrained()->cascadeOnDelete();
        $t->text('title');
        $t->integer('votes')->default(0);
        $t->text('body')->nullable();
    });
    $schema->create('roles', function (Blueprint $t) {
        $t->smallIncrements('id');
        $t->string('name');
    });
    $schema->create('role_user', function (Blueprint $t) {
        $t->bigInteger('user_id');
        $t->smallInteger('role_id');
        $t->integer('level')->default(1);
        $t->timestamps();
        $t->primary(['user_id', 'role_id']);
    });
    $schema->table('posts', function (Blueprint $t) {
        $t->string('slug')->nullable()->index();
        $t->renameColumn('body', 'text');
    });
    $schema->table('posts', function (Blueprint $t) {
        $t->string('title', 200)->nullable()->change();
        $t->fullText('title');
    });
    show([$schema->hasTable('users'), $schema->hasTable('nothing'), $schema->getColumnListing('posts'), $schema->getColumnType('users', 'balance'), $schema->hasColumns('users', ['name', 'email'])]);
    show($db->select("SELECT tablename FROM pg_tables WHERE schemaname = 'laravel' ORDER BY 1"));
    $schema->table('posts', function (Blueprint $t) {
        $t->dropIndex(['slug']);
        $t->dropColumn('slug');
    });
    $schema->rename('roles', 'jobs');
    $schema->rename('jobs', 'roles');
    attempt(fn() => $schema->create('users', fn(Blueprint $t) => $t->id()));
});

step("Laravel: the query builder", function () use ($db) {
    show($db->table('users')->insertGetId(['name' => 'Ann', 'email' => 'ann@example.com', 'options' => json_encode(['theme' => 'dark', 'tags' => ['a', 'b']]), 'photo' => null]));
    show($db->table('users')->insert([['name' => 'Bob', 'email' => 'bob@example.com'], ['name' => 'Cat', 'email' => 'cat@example.com']]));
    show($db->table('users')->insertOrIgnore(['name' => 'Dup', 'email' => 'ann@example.com']));
    show($db->table('users')->upsert([['name' => 'Ann!', 'email' => 'ann@example.com'], ['name' => 'Dan', 'email' => 'dan@example.com']], ['email'], ['name']));
    show($db->table('users')->where('options->theme', 'dark')->orWhereJsonContains('options->tags', 'z')->pluck('name'));
    show($db->table('users')->whereJsonContains('options->tags', ['a'])->whereJsonLength('options->tags', 2)->count());
    show($db->table('users')->where('email', 'ilike', 'A%')->orWhereIn('name', ['Cat', 'Dan'])->orderByDesc('name')->get(['id', 'name', 'doubled']));
    show($db->table('users')->where('id', 1)->update(['options->theme' => 'light', 'balance' => $db->raw('balance + 5.5')]));
    show($db->table('users')->find(1)->options);
    show([$db->table('users')->max('id'), $db->table('users')->sum('balance'), $db->table('users')->avg('id'), $db->table('users')->where('name', 'x')->exists()]);
    foreach (range(1, 25) as $n) {
        $db->table('posts')->insert(['user_id' => $n % 3 + 1, 'title' => "post $n", 'votes' => $n]);
    }
    show($db->table('posts')->join('users', 'users.id', '=', 'posts.user_id')->groupBy('users.name')->havingRaw('sum(votes) > ?', [100])->orderBy('users.name')->select('users.name', $db->raw('sum(votes) AS votes'))->get());
    show($db->table('posts')->forPage(2, 10)->orderBy('id')->pluck('id'));
    show($db->table('posts')->whereDate('id', 'x')->toSql());
    $ids = [];
    $db->table('posts')->orderBy('id')->chunkById(10, function ($posts) use (&$ids) {
        $ids[] = count($posts);
    });
    show($ids);
    show($db->table('posts')->orderBy('id')->cursor()->take(2)->pluck('title'));
    show($db->table('posts')->whereFullText('title', 'post')->count());
    show($db->table('posts')->where('votes', '>', 20)->increment('votes', 5));
    show($db->table('posts')->joinSub($db->table('posts')->selectRaw('user_id, max(votes) AS top')->groupBy('user_id'), 't', fn($j) => $j->on('posts.user_id', '=', 't.user_id')->on('posts.votes', '=', 't.top'))->orderBy('title')->pluck('title'));
    show($db->table('posts')->whereExists(fn($q) => $q->from('users')->whereColumn('users.id', 'posts.user_id')->where('name', 'Bob'))->count());
    show($db->table('posts')->select('user_id')->distinct()->union($db->table('users')->select('id'))->orderBy('user_id')->pluck('user_id'));
    show($db->table('posts')->inRandomOrder('1')->limit(1)->count());
    show($db->table('posts')->join('users', 'users.id', '=', 'posts.user_id')->where('users.name', 'Cat')->limit(2)->delete());
});

step("Laravel: Eloquent", function () use ($db) {
    $user = User::create(['name' => 'Eve', 'email' => 'eve@example.com', 'options' => ['a' => [1, null]], 'balance' => '12.345']);
    show([$user->id, $user->fresh()->balance, $user->fresh()->options, $user->fresh()->active, $user->wasRecentlyCreated]);
    $user->posts()->createMany([['title' => 'one'], ['title' => 'two', 'votes' => 3]]);
    $admin = Role::create(['name' => 'admin']);
    $user->roles()->attach($admin, ['level' => 5]);
    $user->roles()->syncWithoutDetaching([Role::create(['name' => 'editor'])->id]);
    show($user->roles()->orderBy('name')->get()->map(fn($r) => [$r->name, $r->pivot->level]));
    show(User::with('posts')->withCount('posts')->withSum('posts', 'votes')->has('posts', '>=', 2)->orderBy('id')->get()->map(fn($u) => [$u->name, $u->posts_count, $u->posts_sum_votes]));
    show(User::whereHas('roles', fn($q) => $q->where('name', 'admin'))->doesntHave('posts', 'or')->orderBy('id')->pluck('name'));
    show(User::where('active', true)->orderBy('id')->forPage(2, 2)->pluck('name'));
    $user->delete();
    show([User::find($user->id), User::withTrashed()->find($user->id)->name, User::onlyTrashed()->count()]);
    $user->restore();
    show(User::firstOrCreate(['email' => 'new@example.com'], ['name' => 'New'])->name . User::updateOrCreate(['email' => 'new@example.com'], ['name' => 'Newer'])->name);
    show(User::query()->lockForUpdate()->find(1)->name);
    show(Post::with('user')->orderBy('id')->first()->user->name);
});

step("Laravel: errors and transactions", function () use ($db) {
    attempt(fn() => $db->table('users')->insert(['name' => 'x', 'email' => 'ann@example.com']));
    attempt(fn() => $db->table('users')->insert(['name' => 'x', 'email' => 'y', 'level' => 'middle', 'created_at' => '2024-01-01', 'key' => null]));
    attempt(fn() => $db->table('posts')->insert(['user_id' => 0, 'title' => 'x']));
    attempt(fn() => $db->table('nothing')->get());
    attempt(fn() => $db->transaction(function () use ($db) {
        $db->table('roles')->insert(['name' => 'kept']);
        try {
            $db->transaction(function () use ($db) {
                $db->table('roles')->insert(['name' => 'undone']);
                throw new RuntimeException('inner');
            });
        } catch (RuntimeException $e) {
            show($e->getMessage());
        }
        return $db->transactionLevel();
    }, 3));
    show($db->table('roles')->orderBy('id')->pluck('name'));
    show([$db->getDoctrineSchemaManager()->listTableNames() !== [], count($db->getDoctrineSchemaManager()->listTableIndexes('users'))]);
    $db->getSchemaBuilder()->dropAllTables();
    show($db->select("SELECT count(*) AS n FROM pg_tables WHERE schemaname = 'laravel'"));
});

#[ORM\Entity, ORM\Table(name: 'authors', schema: 'doctrine')]
#[ORM\Index(columns: ['name'])]
class Author
{
    #[ORM\Id, ORM\GeneratedValue, ORM\Column(type: 'integer')]
    public ?int $id = null;
    #[ORM\Column(length: 80, unique: true)]
    public string $name = '';
    #[ORM\Column(type: 'json', options: ['jsonb' => true], nullable: true)]
    public ?array $data = null;
    #[ORM\Column(type: 'decimal', precision: 10, scale: 2, options: ['default' => '1.50'])]
    public string $price = '1.50';
    #[ORM\Column(type: 'datetimetz_immutable', nullable: true)]
    public ?DateTimeImmutable $made = null;
    #[ORM\Column(type: 'boolean')]
    public bool $live = true;
    #[ORM\Column(type: 'guid', nullable: true)]
    public ?string $key = null;
    #[ORM\Version, ORM\Column(type: 'integer')]
    public int $version = 1;
    #[ORM\OneToMany(targetEntity: Book::class, mappedBy: 'author', cascade: ['persist', 'remove'])]
    public $books;
}

#[ORM\Entity, ORM\Table(name: 'books', schema: 'doctrine')]
class Book
{
    #[ORM\Id, ORM\GeneratedValue(strategy: 'IDENTITY'), ORM\Column(type: 'bigint')]
    public $id = null;
    #[ORM\ManyToOne(targetEntity: Author::class, inversedBy: 'books'), ORM\JoinColumn(nullable: false, onDelete: 'CASCADE')]
    public $author;
    #[ORM\Column(type: 'text')]
    public string $title = '';
    #[ORM\Column(type: 'blob', nullable: true)]
    public $scan = null;
    #[ORM\Column(type: 'date', nullable: true)]
    public $printed = null;
}

$connection = DriverManager::getConnection(['driver' => 'pdo_pgsql', 'host' => $at['host'], 'port' => $at['port'], 'dbname' => ltrim($at['path'], '/'), 'user' => 'postgres']);
$configuration = new Configuration();
$configuration->setMetadataDriverImpl(new AttributeDriver([]));
$configuration->setProxyDir(sys_get_temp_dir());
$configuration->setProxyNamespace('Proxies');
$configuration->setAutoGenerateProxyClasses(Doctrine\Common\Proxy\AbstractProxyFactory::AUTOGENERATE_EVAL);
$entities = new EntityManager($connection, $configuration);
$tool = new SchemaTool($entities);
$classes = [$entities->getClassMetadata(Author::class), $entities->getClassMetadata(Book::class)];
$connection->getConfiguration()->setSchemaAssetsFilter(fn($asset) => str_starts_with(is_string($asset) ? $asset : $asset->getName(), 'doctrine.'));

step("Doctrine: the schema tool", function () use ($tool, $classes, $connection) {
    show($tool->getCreateSchemaSql($classes));
    $tool->createSchema($classes);
    show($tool->getUpdateSchemaSql($classes, true));
    $connection->executeStatement("ALTER TABLE doctrine.authors DROP COLUMN price, ADD extra int, ALTER name TYPE varchar(20)");
    show($tool->getUpdateSchemaSql($classes, false));
    $tool->updateSchema($classes);
    show($tool->getUpdateSchemaSql($classes));
});

step("Doctrine: DBAL's schema manager", function () use ($connection) {
    $manager = $connection->createSchemaManager();
    $connection->executeStatement("CREATE TABLE doctrine.kinds (a smallint DEFAULT 5, b bigint, c char(4), d varchar(9) DEFAULT 'it''s', e text, f numeric(7,3), g float8, h real, i bool DEFAULT true, j date, k time, l timestamp(0) DEFAULT CURRENT_TIMESTAMP, m timestamptz(0), n bytea, o json, p jsonb, q uuid, r interval)");
    foreach (['doctrine.kinds', 'doctrine.authors'] as $table) {
        foreach ($manager->listTableColumns($table) as $column) {
            $d = $column->toArray();
            unset($d['type']);
            show([get_class($column->getType()), $d]);
        }
    }
    $indexes = array_map(fn($i) => [$i->getColumns(), $i->isUnique(), $i->isPrimary()], array_values($manager->listTableIndexes('doctrine.authors')));
    sort($indexes);
    show($indexes);
    foreach ($manager->listTableForeignKeys('doctrine.books') as $key) {
        show([$key->getLocalColumns(), $key->getForeignTableName(), $key->onDelete()]);
    }
    show([array_map(fn($s) => $s->getName(), $manager->listSequences()), $manager->listSchemaNames() !== [], $connection->getDatabasePlatform()->getName()]);
    $connection->executeStatement("CREATE VIEW doctrine.named AS SELECT name FROM doctrine.authors");
    foreach ($manager->listViews() as $view) {
        if (str_starts_with($view->getName(), 'doctrine')) {
            show([$view->getName(), $view->getSql()]);
        }
    }
    $connection->executeStatement("DROP VIEW doctrine.named; DROP TABLE doctrine.kinds");
});

step("Doctrine: entities, DQL, locks", function () use ($entities, $connection) {
    foreach (['Ann', 'Bob', 'Cat'] as $n => $name) {
        $author = new Author();
        $author->name = $name;
        $author->data = ['n' => $n, 'list' => [1, null]];
        $author->made = new DateTimeImmutable('2024-02-29 01:02:03+00:00');
        $author->key = '9b2d0b8e-5d5c-4c3f-9a53-0a3b3a1b7c1' . $n;
        $author->books = new Doctrine\Common\Collections\ArrayCollection();
        foreach (['first', 'second'] as $title) {
            $book = new Book();
            $book->author = $author;
            $book->title = "$title of $name";
            $book->scan = "\0\xff";
            $book->printed = new DateTime('2024-01-0' . ($n + 1));
            $author->books->add($book);
        }
        $entities->persist($author);
    }
    $entities->flush();
    $entities->clear();
    $ann = $entities->getRepository(Author::class)->findOneBy(['name' => 'Ann']);
    show([$ann->id, $ann->data, $ann->price, $ann->made->setTimezone(new DateTimeZone('UTC'))->format('c'), $ann->live, $ann->key, $ann->version, count($ann->books), bin2hex(stream_get_contents($ann->books[0]->scan))]);
    show($entities->createQuery('SELECT a.name, COUNT(b) AS n, MAX(b.printed) AS last FROM Author a JOIN a.books b WHERE a.price > :p GROUP BY a.name HAVING COUNT(b) > 1 ORDER BY a.name')->setParameter('p', '1')->getArrayResult());
    show(array_map(fn($b) => $b->title, $entities->createQuery("SELECT b, a FROM Book b JOIN b.author a WHERE LOWER(b.title) LIKE 'first%' AND LENGTH(a.name) = 3 ORDER BY b.title DESC")->setMaxResults(2)->setFirstResult(1)->getResult()));
    show($entities->createQuery("UPDATE Author a SET a.live = false WHERE a.name IN (:names)")->setParameter('names', ['Bob', 'Cat'])->execute());
    show(count(iterator_to_array(new Doctrine\ORM\Tools\Pagination\Paginator($entities->createQuery('SELECT a, b FROM Author a JOIN a.books b ORDER BY a.name')->setMaxResults(2)))));
    $ann->price = '9.99';
    $entities->flush();
    show($ann->version);
    $connection->executeStatement("UPDATE doctrine.authors SET version = version + 1 WHERE name = 'Ann'");
    $ann->price = '8.88';
    attempt(fn() => $entities->flush());
});

step("Doctrine: DBAL: statements, transactions, errors", function () use ($connection) {
    show($connection->fetchAllAssociative('SELECT name, live, price FROM doctrine.authors WHERE name IN (?) ORDER BY name', [['Ann', 'Bob']], [Doctrine\DBAL\Connection::PARAM_STR_ARRAY]));
    show($connection->insert('doctrine.books', ['author_id' => 1, 'title' => 'late']) . ' ' . ($connection->lastInsertId() > 0));
    show($connection->createQueryBuilder()->select('count(*)')->from('doctrine.books', 'b')->where('b.title LIKE :t')->setParameter('t', '%of%')->executeQuery()->fetchOne());
    attempt(fn() => $connection->insert('doctrine.authors', ['id' => 99, 'name' => 'Ann', 'live' => 1, 'version' => 1]));
    attempt(fn() => $connection->insert('doctrine.books', ['author_id' => 0, 'title' => 'x']));
    attempt(fn() => $connection->insert('doctrine.books', ['author_id' => 1]));
    attempt(fn() => $connection->executeQuery('SELECT * FROM nothing'));
    attempt(fn() => $connection->executeQuery('SELECT nothing FROM doctrine.books'));
    attempt(fn() => $connection->executeQuery('SELEC'));
    $connection->setNestTransactionsWithSavepoints(true);
    $connection->beginTransaction();
    $connection->delete('doctrine.books', ['title' => 'late']);
    $connection->beginTransaction();
    $connection->executeStatement('DELETE FROM doctrine.books');
    $connection->rollBack();
    $connection->commit();
    show($connection->fetchOne('SELECT count(*) FROM doctrine.books'));
    $connection->setTransactionIsolation(Doctrine\DBAL\TransactionIsolationLevel::SERIALIZABLE);
    show($connection->fetchOne('SHOW transaction_isolation'));
});

step("the end", function () use ($tool, $classes, $pdo, $connection) {
    show($tool->getDropSchemaSQL($classes));
    $tool->dropSchema($classes);
    show($connection->fetchOne("SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = 'doctrine'"));
    $pdo->exec("DROP SCHEMA laravel CASCADE; DROP SCHEMA IF EXISTS doctrine CASCADE");
});
