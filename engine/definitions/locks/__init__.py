"""Which objects of the catalog a DDL statement locks (``engine.session.catalog.locks`` takes the locks; D77, U10).

    what it changes or drops       X on the object, and on its table's rows where they change with it
    what a new object refers to    S on the object: it stays as it is until the reference to it is committed
    names it takes or gives up     X on the name

    a table   <── views over it, foreign keys to it          whoever adds one needs S (a view) or X (a key) on the table,
              <── sequences that its columns own             so X on the table keeps the set of its dependents as it is;
                                                             CASCADE then takes X on each of them, and on theirs.

    functions that are        much may depend on them: X on WHOLE, the catalog of their database, which all
    there, aggregates,        others have S
    domains, extensions,
    DROP TYPE, text search,
    foreign data,
    operator classes,
    DROP SCHEMA of such

``forms.all_databases`` is for what databases share: the catalogs of all are locked. The row of each definition says
which function it is (``engine.statements.registry``); a statement whose row has none locks nothing of the catalog, and
``CatalogLocks.take_for`` refuses it.
"""
