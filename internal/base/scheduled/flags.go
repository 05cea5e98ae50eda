package scheduled

import (
	"slices"
	"strings"
)

// flagsOf are the flags of a client of databases, by their long names. A flag that is not known to make no difference is part of the
// target: a copy with it may hold something else than one without.
type flagsOf struct {
	long  map[byte]string // of the letters
	value map[string]bool // which have a value, also behind a blank
	same  map[string]bool // which make no difference to what is read or done
}

// flagged reads a table: “j=jobs” is a letter, “:” behind a name a value, “~” before it that it makes no difference.
func flagged(text string) flagsOf {
	f := flagsOf{map[byte]string{}, map[string]bool{}, map[string]bool{}}
	for _, word := range strings.Fields(text) {
		var letters string
		if at := strings.IndexByte(word, '='); at >= 0 {
			letters, word = word[:at], word[at+1:]
		}
		word, isSame := strings.CutPrefix(word, "~")
		word, hasValue := strings.CutSuffix(word, ":")
		f.value[word], f.same[word] = hasValue, isSame
		for i := range len(letters) {
			f.long[letters[i]] = word
		}
	}
	return f
}

const (
	ofServer    = " h=host: p=port: U=~username: w=~no-password W=~password v=~verbose d=dbname: "
	ofMySQLSelf = ` h=host: P=port: u=~user: p=~password S=socket: v=~verbose C=~compress ~ssl-mode: ~ssl-ca: ~protocol: ~default-character-set: ~max-allowed-packet:
 ~get-server-public-key ~enable-cleartext-plugin ~compression-algorithms: ~defaults-group-suffix: defaults-file: defaults-extra-file: `
)

// flagTables are those of the clients, from their manuals.
var flagTables = map[string]flagsOf{
	"pg_dump": flagged(ofServer + `a=data-only b=large-objects B=no-large-objects c=~clean C=~create e=extension: E=~encoding: f=~file: F=~format: j=~jobs: n=schema: N=exclude-schema:
 O=no-owner s=schema-only S=~superuser: t=table: T=exclude-table: x=no-privileges Z=~compress: ~if-exists ~inserts ~column-inserts ~rows-per-insert: ~quote-all-identifiers ~no-sync
 ~lock-wait-timeout: ~extra-float-digits: ~use-set-session-authorization ~disable-dollar-quoting ~role: exclude-table-data: exclude-table-data-and-children: table-and-children:
 exclude-table-and-children: include-foreign-data: exclude-extension: filter: section: snapshot: ~sync-method:`),
	"pg_dumpall": flagged(ofServer + `a=data-only c=~clean E=~encoding: f=~file: g=globals-only l=~database: O=no-owner r=roles-only s=schema-only S=~superuser: t=tablespaces-only
 x=no-privileges ~if-exists ~inserts ~column-inserts ~rows-per-insert: ~quote-all-identifiers ~no-sync ~lock-wait-timeout: ~role: exclude-database: filter:`),
	"pg_basebackup": flagged(ofServer + `D=~pgdata: F=~format: r=~max-rate: R=~write-recovery-conf t=target: T=~tablespace-mapping: X=~wal-method: ~waldir: z=~gzip Z=~compress: c=~checkpoint:
 C=~create-slot l=~label: n=~no-clean N=~no-sync P=~progress S=~slot: s=~status-interval: i=incremental:`),
	"vacuumdb": flagged(ofServer + `a=all e=~echo f=full F=freeze j=~jobs: n=schema: N=exclude-schema: P=~parallel: q=~quiet t=table: z=analyze Z=analyze-only ~maintenance-db:
 min-xid-age: min-mxid-age: buffer-usage-limit:`),
	"reindexdb": flagged(ofServer + `a=all e=~echo i=index: j=~jobs: q=~quiet s=system S=schema: t=table: ~maintenance-db: tablespace:`),
	"clusterdb": flagged(ofServer + `a=all e=~echo q=~quiet t=table: ~maintenance-db:`),
	"psql": flagged(` h=host: p=port: U=~username: w=~no-password W=~password d=dbname: a=~echo-all A=~no-align b=~echo-errors c=~command: e=~echo-queries E=~echo-hidden f=~file: F=~field-separator:
 H=~html l=list L=~log-file: n=~no-readline o=~output: P=~pset: q=~quiet R=~record-separator: s=~single-step S=~single-line t=~tuples-only T=~table-attr: v=set: x=~expanded
 X=~no-psqlrc z=~field-separator-zero 0=~record-separator-zero 1=~single-transaction variable: ~csv`),
	"mysqldump": flagged(ofMySQLSelf + `A=all-databases B=databases d=no-data e=~extended-insert E=events f=~force F=~flush-logs i=~comments K=~disable-keys l=~lock-tables n=~no-create-db q=~quick
 Q=~quote-names r=~result-file: R=routines t=no-create-info T=tab: w=where: x=~lock-all-tables X=xml y=~no-tablespaces ~single-transaction ~opt ~skip-lock-tables ~skip-add-locks ~hex-blob
 ~column-statistics: ~set-gtid-purged: ~master-data ~source-data ~add-drop-table ~no-autocommit ~complete-insert ~skip-comments ~skip-dump-date ~skip-extended-insert ~net-buffer-length:
 ~log-error: ignore-table: ignore-table-data: ignore-database: tables`),
	"mysql": flagged(ofMySQLSelf + `e=~execute: D=database: B=~batch N=~skip-column-names s=~silent t=~table f=~force A=~no-auto-rehash q=~quick r=~raw E=~vertical H=~html X=~xml n=~unbuffered
 L=~skip-line-numbers`),
	"mongodump": flagged(`h=host: port: u=~username: p=~password: d=db: c=collection: q=query: o=~out: j=~numParallelCollections: v=~verbose uri: ~gzip ~archive ~quiet ~ssl ~tls
 ~authenticationDatabase: ~authenticationMechanism: ~readPreference: excludeCollection: excludeCollectionsWithPrefix: queryFile: oplog dumpDbUsersAndRoles`),
}

// given is one flag of a command line, by its long name if it is known.
type given struct {
	name, value string
	written     string // as it was written, of one that is not known
}

// parse takes a command line apart. A letter that is not known ends its word: what is behind it may be its value.
func (f flagsOf) parse(program string, args []string) (flags []given, positional []string) {
	dashed := strings.NewReplacer("_", "-")
	for i := 0; i < len(args); i++ {
		arg := args[i]
		next := func() string {
			if i++; i < len(args) {
				return args[i]
			}
			return ""
		}
		switch {
		case arg == "--":
			return flags, append(positional, args[i+1:]...)
		case strings.HasPrefix(arg, "--"):
			name, value, isGiven := strings.Cut(arg[2:], "=")
			if strings.HasPrefix(program, "mysql") {
				name = dashed.Replace(name)
			}
			hasValue, known := f.value[name]
			if known && hasValue && !isGiven {
				value = next()
			}
			one := given{name: name, value: value}
			if !known {
				one.written = arg
			}
			flags = append(flags, one)
		case len(arg) > 1 && arg[0] == '-':
			for at := 1; at < len(arg); at++ { // several letters behind one dash, the last with its value
				name, known := f.long[arg[at]]
				if !known {
					flags = append(flags, given{written: "-" + arg[at:]})
					break
				}
				if name == "password" && strings.HasPrefix(program, "mysql") { // what is behind it is one
					flags = append(flags, given{name: name})
					break
				}
				if !f.value[name] {
					flags = append(flags, given{name: name})
					continue
				}
				value := arg[at+1:]
				if value == "" {
					value = next()
				}
				flags = append(flags, given{name: name, value: value})
				break
			}
		default:
			positional = append(positional, arg)
		}
	}
	return flags, positional
}

// readDatabase reads which database a client is for: flags, a URL, the words of a connection, the environment. host is where it runs,
// when that is not this machine.
func (a *Action) readDatabase(args []string, env map[string]string, host string) {
	table := flagTables[a.Program]
	flags, positional := table.parse(a.Program, args)
	var details []string
	socket := false
	for _, flag := range flags {
		switch {
		case flag.written != "":
			details = append(details, flag.written)
		case flag.name == "host":
			a.Host = flag.value
		case flag.name == "port":
			a.Port = flag.value
		case flag.name == "dbname", flag.name == "db", flag.name == "uri":
			a.connection(flag.value)
		case a.Program == "mysql" && flag.name == "database":
			a.Database = flag.value
		case a.Program == "mysql" && flag.name == "execute":
			a.SQL = flag.value
			details = append(details, plainSQL(flag.value))
		case flag.name == "set" || flag.name == "variable":
			if a.Program == "psql" && (strings.HasPrefix(flag.value, "ON_ERROR") || strings.HasPrefix(flag.value, "VERBOSITY=")) {
				continue
			}
			details = append(details, "--set "+flag.value)
		case table.same[flag.name]:
		default:
			socket = socket || flag.name == "socket"
			details = append(details, strings.TrimSpace("--"+flag.name+" "+flag.value))
		}
	}
	details = append(details, a.readPositional(positional)...)
	ofAll := a.Program == "pg_dumpall" || a.Program == "pg_basebackup"
	if a.Database == "" && !ofAll {
		a.Database = env["PGDATABASE"]
	}
	if a.Host == "" {
		if a.Host = env["PGHOST"]; a.isMySQL() {
			a.Host = env["MYSQL_HOST"]
		}
	}
	if a.Host == "" && socket {
		a.Host = here
	}
	if a.Host = plainHost(a.Host); host != "" && (a.Host == "" || a.Host == here) { // there, this machine is that one
		a.Host = plainHost(host)
	}
	if a.Port == "" && !a.isMySQL() {
		a.Port = env["PGPORT"]
	}
	a.Port = plainPort(a.Program, a.Port)
	slices.Sort(details)
	a.Detail = strings.Join(details, " ")
}

// readPositional takes the name of the database, and gives whatever stands behind it: tables of mysqldump, of psql a user.
func (a *Action) readPositional(positional []string) []string {
	if len(positional) > 0 && a.Database == "" && a.Program != "pg_dumpall" && a.Program != "pg_basebackup" {
		a.connection(positional[0])
		positional = positional[1:]
	}
	if a.Program == "psql" && len(positional) > 0 {
		positional = positional[1:]
	}
	return positional
}

func (a Action) isMySQL() bool { return strings.HasPrefix(a.Program, "mysql") }

// plainSQL writes a statement so that blanks, capitals and the end make no difference.
func plainSQL(text string) string {
	return strings.TrimSuffix(strings.ToLower(strings.Join(strings.Fields(text), " ")), ";")
}
