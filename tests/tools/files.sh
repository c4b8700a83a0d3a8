#!/bin/bash
# Tests what writing does to what stands at the path: links, modes, pipes, devices, folders that may not be written,
# full disks.
set -u
export WEFT_PACE=0
cd "$(dirname "$0")/../.." || exit 1
W=$(realpath "${WEFT:-build/weft}")
d=$PWD/build/check/put
rm -rf "$d"
mkdir -p "$d"
cd "$d" || exit 1
umask 022

# is NAME GOT WANTED
is() {
  if [ "$2" = "$3" ]
  then echo "ok files/$1"
  else echo "not ok files/$1: got ${2:0:200} instead of ${3:0:200}"
  fi
}
w() { timeout 20 "$W" -e "$1" 2>&1; }
# fails NAME 'PATTERN' PROGRAM
fails() {
  local out
  out=$(w "$3" | tr '\n' '~')
  if [[ $out =~ $2 ]]; then echo "ok files/$1"; else echo "not ok files/$1: said ${out:0:200}"; fi
}

# Every writer, on the same things.
declare -A writers=(
  [text]='write_text("PATH", "new\n")'
  [npy]='save_npy("PATH", [1.0, 2.0])'
  [csv]='save_csv("PATH", {a: [1, 2]})'
)
for kind in text npy csv; do
  put() { w "${writers[$kind]//PATH/$1}"; }
  size() { stat -Lc %s "$1"; }
  rm -rf plain && mkdir plain && cd plain || exit 1
  put ref
  want=$(size ref)
  is "$kind-new-mode" "$(stat -c %a ref)" 644
  (umask 077; put private)
  is "$kind-new-umask" "$(stat -c %a private)" 600
  echo old >secret; chmod 640 secret; put secret
  is "$kind-mode-kept" "$(stat -c %a secret) $(size secret)" "640 $want"
  echo old >target; ln -s target l1; ln -s l1 l2; put l2
  is "$kind-links-followed" "$(readlink l2) $(readlink l1) $(size target)" "l1 target $want"
  mkdir sub; ln -s ../deep sub/link; put sub/link
  is "$kind-dangling-link" "$(readlink sub/link) $(size deep)" "../deep $want"
  ln -s "$PWD/absolute" link; put link
  is "$kind-dangling-absolute" "$(readlink link) $(size absolute)" "$PWD/absolute $want"
  echo old >one; ln one two; put one
  is "$kind-hard-links" "$(stat -c %h one) $(size two)" "2 $want"
  ln -s loop1 loop2; ln -s loop2 loop1
  fails "$kind-loop" 'cannot write "loop1": Too many' "${writers[$kind]//PATH/loop1}"
  is "$kind-loop-kept" "$(readlink loop1)" loop2
  fails "$kind-folder" 'cannot write "sub": Is a directory' "${writers[$kind]//PATH/sub}"
  fails "$kind-no-folder" 'cannot write "no/such": No such file' "${writers[$kind]//PATH/no/such}"
  mkfifo pipe; timeout 20 cat pipe >got & put pipe; wait
  is "$kind-pipe" "$(stat -c %F pipe) $(size got)" "fifo $want"
  long=$(printf 'n%.0s' {1..255}); put "$long"
  is "$kind-long-name" "$(size "$long")" "$want"
  fails "$kind-full-device" 'cannot write "/dev/full": No space' "${writers[$kind]//PATH//dev/full}"
  is "$kind-device-kept" "$(stat -c %F /dev/full)" "character special file"
  put /dev/null
  is "$kind-null-kept" "$(stat -c %F /dev/null)" "character special file"
  is "$kind-no-temporaries" "$(find . -name '*.tmp' -o -name '*.tmp*' | wc -l)" 0
  cd ..
done

# More than a pipe takes at once; a reader that leaves; nobody that reads.
mkfifo big gone
timeout 20 cat big >got & w 'write_text("big", join(map(_ => "0123456789", 0..200000), ""))'; wait
is pipe-large "$(stat -c %s got)" 2000000
(exec 3<gone; sleep 0.3) & fails pipe-closed 'cannot write "gone": Broken pipe' \
  'write_text("gone", join(map(_ => "0123456789", 0..200000), ""))'; wait
out=$(timeout 20 "$W" --deadline 0.2 -e 'write_text("gone", "x")' 2>&1)
is pipe-deadline "$(head -n 1 <<<"$out")" "error: the deadline has passed"
out=$(timeout 20 "$W" --deadline 0.2 -e 'read_text("gone")' 2>&1)
is pipe-read-deadline "$(head -n 1 <<<"$out")" "error: the deadline has passed"
(sleep 0.2; printf 'late'; sleep 0.2; printf 'r') >gone & is pipe-read "$(w 'print(read_text("gone"))')" later; wait

# Standard output under its name, wherever it leads: in order with what is printed.
p='print("a"); write_text("/dev/stdout", "b\n"); print("c")'
is stdout-pipe "$(w "$p" | tr '\n' ' ')" "a b c "
"$W" -e "$p" >to; is stdout-file "$(tr '\n' ' ' <to)" "a b c "
"$W" -e "$p" >>to; is stdout-append "$(tr '\n' ' ' <to)" "a b c a b c "
"$W" -e 'write_text("/dev/stderr", "b\n")' 2>err; is stderr-file "$(cat err)" b
is stdin-text "$(echo hello | "$W" -e 'print(trim(read_text("/dev/stdin")))')" hello

# The limit of the process is an error and no signal; the old file is whole, and no temporary is left.
echo old >limited
out=$(ulimit -f 8; timeout 20 "$W" -e 'write_text("limited", join(map(_ => "0123456789", 0..20000), ""))' 2>&1)
is limit-said "$(head -n 1 <<<"$out")" 'error: write_text: cannot write "limited": File too large'
is limit-kept "$(cat limited) $(find . -name '*.tmp' | wc -l)" "old 0"
echo old >shared; ln shared shared2
out=$(ulimit -f 8; timeout 20 "$W" -e 'write_text("shared", join(map(_ => "0123456789", 0..20000), ""))' 2>&1)
is limit-in-place "$(head -n 1 <<<"$out")" 'error: write_text: cannot write "shared": File too large'
is limit-in-place-kept "$(cat shared2)" old

# A file that gets shorter in place.
w 'write_text("shared", "0123456789")'; w 'write_text("shared2", "ab")'
is in-place-shorter "$(cat shared)" ab

# Written by others than root: permissions count.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
  r=$(mktemp -d)
  cp "$W" "$r/weft"
  chmod 755 "$r"
  user() { (cd "$r" && timeout 20 setpriv --reuid 65534 --regid 65534 --clear-groups ./weft -e "$1" 2>&1 | head -n 1); }
  mkdir "$r/shut" "$r/open"; chmod 555 "$r/shut"; chmod 777 "$r/open"
  echo old >"$r/shut/mine"; chown 65534:65534 "$r/shut/mine"
  user 'write_text("shut/mine", "new")'
  is folder-read-only "$(cat "$r/shut/mine")" new
  is folder-read-only-new "$(user 'write_text("shut/other", "new")')" \
    'error: write_text: cannot write "shut/other": Permission denied'
  echo old >"$r/open/theirs"; chmod 644 "$r/open/theirs"
  is file-read-only "$(user 'write_text("open/theirs", "new")') $(cat "$r/open/theirs")" \
    'error: write_text: cannot write "open/theirs": Permission denied old'
  chmod 666 "$r/open/theirs"
  user 'write_text("open/theirs", "new")'
  is owner-kept "$(stat -c '%u %a' "$r/open/theirs") $(cat "$r/open/theirs")" '0 666 new'
  is unreadable "$(chmod 600 "$r/open/theirs"; user 'read_text("open/theirs")')" \
    'error: read_text: cannot read "open/theirs": Permission denied'
  chown 65534:65533 "$r/open/theirs"; chmod 660 "$r/open/theirs"
  w "write_text(\"$r/open/theirs\", \"by root\")"
  is owner-kept-by-root "$(stat -c '%u %g %a' "$r/open/theirs") $(cat "$r/open/theirs")" '65534 65533 660 by root'
  rm -rf "$r"
else
  echo "skip files/permissions: needs root and setpriv"
fi

# A disk that is full, where one can be mounted: in a space of its own, which ends with the test.
mkdir -p disk
export W
export -f is w
full() {
  mount -t tmpfs -o size=64k none disk 2>/dev/null || exit 9
  echo old >disk/f; ln -s f disk/l
  out=$(w 'write_text("disk/l", join(map(_ => "0123456789", 0..20000), ""))')
  is disk-full "$(head -n 1 <<<"$out") $(cat disk/f) $(ls -A disk | tr '\n' ' ')" \
    'error: write_text: cannot write "disk/l": No space left on device old f l '
  ln disk/f disk/g
  out=$(w 'write_text("disk/f", join(map(_ => "0123456789", 0..20000), ""))')
  is disk-full-in-place "$(head -n 1 <<<"$out") $(cat disk/f)" \
    'error: write_text: cannot write "disk/f": No space left on device old'
}
export -f full
unshare -m bash -c full 2>/dev/null || echo "skip files/disk-full: no disk can be mounted here"

# The log files of the program keep to the same rule.
echo old >log; chmod 600 log; ln -s log loglink
echo 'print(1)' >one.weft
"$W" --log-file loglink --trace-file /dev/null one.weft >/dev/null
is log-link "$(readlink loglink) $(stat -c %a log) $(head -c 1 log)" 'log 600 {'
is log-device "$(stat -c %F /dev/null)" "character special file"
mkfifo unread
timeout -s INT 1 "$W" --log-file unread one.weft >/dev/null 2>err.txt
is log-pipe-interrupted "$(cat err.txt)" 'weft: cannot write "unread": interrupted'
out=$("$W" --log-file no/such one.weft 2>&1 >/dev/null)
is log-reason "$out" 'weft: cannot write "no/such": No such file or directory'

# Errors of reading name the path and the reason.
fails read-folder 'cannot read ".": Is a directory' 'read_text(".")'
fails read-missing 'cannot read "none": No such file' 'load_csv("none")'
printf 'a\nb\xff\n' >latin; fails read-latin 'latin" is not UTF-8: line 2' 'read_text("latin")'
truncate -s 5G huge; fails read-huge 'huge" is too large' 'read_text("huge")'; rm -f huge

# ---- .npy files by hand: what is well formed is read, anything else is one error that names the file and the reason
# npy NAME HEADER DATA (escapes of printf): a file of version 1
npy() { { printf '\x93NUMPY\x01\x00'; printf "\\x$(printf %02x "${#2}")\\x00%s" "$2"; printf "$3"; } >"$1.npy"; }
header() { printf "{'descr': %s, 'fortran_order': %s, 'shape': %s, }" "$1" "${2:-False}" "${3:-(2,)}"; }
# reads NAME WANTED, refuses NAME PATTERN
reads() { is "npy-$1" "$(w "let x = load_npy(\"$1.npy\"); print(x.dtype, x.shape, ravel(x))")" "$2"; }
refuses() { fails "npy-$1" "^error: load_npy: \"$1.npy\": $2" "load_npy(\"$1.npy\")"; }
two='\x01\x00\x00\x00\x02\x00\x00\x00'
npy plain "$(header "'<i4'")" "$two"; reads plain 'i32 (2,) [1, 2]'
npy big-endian "$(header "'>i4'")" '\x00\x00\x00\x01\xff\xff\xff\xfe'; reads big-endian 'i32 (2,) [1, -2]'
npy big-f8 "$(header "'>f8'" False '(1,)')" '\x3f\xf8\x00\x00\x00\x00\x00\x00'; reads big-f8 'f64 (1,) [1.5]'
npy fortran "$(header "'|u1'" True '(2, 3)')" '\x00\x03\x01\x04\x02\x05'; reads fortran 'u8 (2, 3) [0, 1, 2, 3, 4, 5]'
npy bools "$(header "'|b1'")" '\x02\x00'; reads bools 'bool (2,) [true, false]'
npy scalar "$(header "'<i4'" False '()')" "$two"; reads scalar 'i32 () [1]'
npy none "$(header "'<f8'" False '(0, 3)')" ''; reads none 'f64 (0, 3) []'
npy quotes '{"shape": (2, ) , "descr":"<i4","fortran_order" :False}' "$two"; reads quotes 'i32 (2,) [1, 2]'
npy i1 "$(header "'|i1'")" '\x7f\x80'; reads i1 'i32 (2,) [127, -128]'
npy i2 "$(header "'>i2'")" '\xff\xfe\x01\x00'; reads i2 'i32 (2,) [-2, 256]'
npy u2 "$(header "'<u2'")" '\xff\xff\x01\x00'; reads u2 'i32 (2,) [65535, 1]'
npy u4 "$(header "'<u4'" True)" '\xff\xff\xff\xff\x01\x00\x00\x00'; reads u4 'u32 (2,) [4294967295, 1]'
npy c8 "$(header "'<c8'" False '(1,)')" '\x00\x00\xc0\x3f\x00\x00\x00\xc0'; reads c8 'c64 (1,) [1.5-2.0j]'
npy big-c8 "$(header "'>c8'" False '(1,)')" '\x3f\xc0\x00\x00\xc0\x00\x00\x00'; reads big-c8 'c64 (1,) [1.5-2.0j]'
is npy-complex "$(w 'save_npy("c.npy", [[1 + 2j, -0.5j]]); let x = load_npy("c.npy"); print(x.dtype, x.shape, x[0])')" \
  'c128 (1, 2) [1.0+2.0j, -0.0-0.5j]'
npy u8 "$(header "'<u8'" True)" '\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00\x00\x00\x00\x00\x00'
reads u8 'u64 (2,) [18446744073709551615, 1]'
for type in '<c32' '<U3' '|O' '<b4' '?' ''; do
  npy type "$(header "'$type'")" "$two"; refuses type "its dtype '[^']*' is not supported"
done
npy records "$(header "[('a', '<i4')]")" "$two"; refuses records 'its elements are records'
npy short "$(header "'<f8'")" "$two"; refuses short 'it holds fewer elements'
npy bare-number "$(header "'<i4'" False '(2)')" "$two"; refuses bare-number 'its shape is malformed'
npy negative "$(header "'<i4'" False '(-2,)')" "$two"; refuses negative 'its shape is malformed'
npy too-large "$(header "'<i4'" False '(99999999999999999999999,)')" "$two"; refuses too-large 'its shape is too large'
npy overflow "$(header "'<i4'" False '(4294967296, 4294967296)')" "$two"; refuses overflow 'it holds fewer elements'
npy order "$(header "'<i4'" Falsehood)" "$two"; refuses order 'its header is malformed'
npy no-order "$(header "'<i4'" 0)" "$two"; refuses no-order "its 'fortran_order' is malformed"
npy twice "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), 'shape': (1,)}" "$two"
refuses twice 'its header is malformed'
npy more-keys "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), 'x': 1}" "$two"
refuses more-keys 'its header is malformed'
npy fewer-keys "{'descr': '<i4', 'shape': (2,)}" "$two"; refuses fewer-keys 'its header is malformed'
npy key-in-text "{'x': \"'shape': (1,)\", 'descr': '<i4', 'fortran_order': False, 'shape': (2,)}" "$two"
refuses key-in-text 'its header is malformed'
npy unclosed "{'descr': '<i4', 'fortran_order': False, 'shape': (2,)" "$two"; refuses unclosed 'its header is malformed'
printf '\x93NUMPY\x01\x00\xff\xff{' >cut.npy; refuses cut 'it ends inside its header'
printf '\x93NUMPY\x09\x00\x00\x00' >version.npy; refuses version 'its format version'
printf 'PK\x03\x04..........' >zip.npy; refuses zip 'it is no .npy file'
