# Drives Redis and Redis::Fast; see ../go/steps, which does the same. The last
# argument is the module. They connect again by themselves when they are told for
# how many seconds to try.
use strict;
use warnings;
use JSON::PP;

use constant { CHECKS => 100, BURST => 60 };

my ($host, $port, undef, undef, $module) = @ARGV;
eval "require $module" or die $@;

sub call {
    my ($client, $command, @words) = @_;
    my $reply = $client->$command(@words);    # in list context it would be a list
    return $reply;
}

sub check { return ('RL.CHECK', $_[0], '-', '-', $_[1] // 1) }

sub in_order {
    my ($i, $reply) = @_;
    my @want = $i < BURST ? (1, BURST, BURST - 1 - $i) : (0, BURST, 0);
    my $got = ref $reply eq 'ARRAY' ? "@$reply[0 .. 2, 5, 6]" : 'no decision';
    die "check ", $i + 1, " answers $got\n" if $got ne "@want daily store";
    return;
}

sub admitted {
    my $reply = call($_[0], check('other'));
    die "answers @$reply\n" if @$reply != 7 || $reply->[0] != 1 || $reply->[6] ne 'store';
    return;
}

sub pipeline {
    my ($client) = @_;
    my @replies;
    my ($command, @words) = check('piped');
    for (1 .. CHECKS) {
        $client->$command(@words, sub { push @replies, $_[0] });
    }
    $client->wait_all_responses;
    die scalar(@replies), " replies\n" if @replies != CHECKS;
    in_order($_, $replies[$_]) for 0 .. $#replies;
    return;
}

sub refusal {
    my ($client) = @_;
    die "answers no error\n" if eval { call($client, check('other', 'bad')); 1 };
    die "says $@\n" if $@ !~ /ERR cost must be an integer between 1 and 2147483647/;
    admitted($client);
    return;
}

sub reconnect {
    my ($client) = @_;
    print "kill\n";
    my $answer = <STDIN>;
    die "told $answer" if $answer ne "killed\n";
    eval { admitted($client); 1 } or admitted($client);    # one call may fail
    return;
}

my @steps = (
    check    => sub { in_order($_, call($_[0], check('alone'))) for 0 .. CHECKS - 1 },
    pipeline => \&pipeline,
    denial   => sub {
        my $reply = call($_[0], check('alone'));
        die "answers @$reply\n" if $reply->[0] != 0 || $reply->[3] <= 0;
    },
    error   => \&refusal,
    dialect => sub {
        my $got = join ' ', @{ call($_[0], 'CL.THROTTLE', 'key', 5, 10, 60, 1) };
        die "answers $got\n" if $got ne '0 6 5 -1 6';
    },
    reconnect => \&reconnect,
);

# credentials returns the options of the environment. Redis has no options for the authority
# and the client's certificate: they are defaults of IO::Socket::SSL.
sub credentials {
    my @options;
    if ($ENV{CLIENT_CA}) {
        require IO::Socket::SSL;
        my @own = $ENV{CLIENT_CERT} ? (SSL_cert_file => $ENV{CLIENT_CERT}, SSL_key_file => $ENV{CLIENT_KEY}) : ();
        IO::Socket::SSL::set_client_defaults(SSL_ca_file => $ENV{CLIENT_CA}, @own);
        push @options, ssl => 1;
    }
    push @options, username => $ENV{CLIENT_USER}, password => $ENV{CLIENT_PASSWORD} if $ENV{CLIENT_USER};
    return @options;
}

$| = 1;
my %saw;
my $client = $module->new(server => "$host:$port", reconnect => 2, credentials());
while (my ($name, $step) = splice @steps, 0, 2) {
    $saw{$name} = eval { $step->($client); 1 } ? 'ok' : "$@";
}
print encode_json({ version => $module->VERSION . '', steps => \%saw }), "\n";
