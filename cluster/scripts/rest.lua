-- decide_rest decides n_calls calls of the run that begins at the argument run. The arguments
-- of these calls begin at first, or after those of the limits if first is nil. It returns the
-- positions of the next arguments, keys and replies.
return function(run, n_calls, first, next_key, last_reply)
  local limits, args = read_limits(run)
  at, key_at, n_out, read_key = first or args, next_key, last_reply, nil
  local verb = ARGV[run]
  decide_any(check_of[verb] or verb, limits, n_calls, check_of[verb])
  return at, key_at, n_out
end
