# Connects standard input and output to a Unix socket, for `hook.sh` where no `nc` can: `perl hook.pl SOCKET`.
# Without a module, because loading one takes longer than all the rest. Ends when the other side hangs up, or after a second.
$SIG{ALRM} = sub { exit 1 };  # a shell would tell of a process that a signal ended
alarm 1;
# BSD and macOS have the family of an address in its second byte, after its length.
my $address = pack($^O =~ /bsd|darwin/ ? "xCa*" : "Sa*", 1, $ARGV[0]);
socket(DAEMON, 1, 1, 0) && connect(DAEMON, $address) or exit 1;
select(DAEMON);
$| = 1;
print <STDIN>;
print STDOUT <DAEMON>;
