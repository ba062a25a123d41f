-- Asks Limitgate about a request, and leaves the answer in variables of the transaction.

local url = "http://127.0.0.1:8081/check?tenant=shop"

-- The first value of a header of an answer, or nil.
local function first(headers, name)
  return headers and headers[name] and headers[name][0]
end

core.register_action("limitgate", { "http-req" }, function(txn)
  local answer = core.httpclient():get{
    url = url,
    timeout = 200, -- milliseconds
    headers = {
      ["x-original-method"] = { txn.sf:method() },
      ["x-original-uri"] = { txn.sf:pathq() },
      ["x-forwarded-for"] = { txn.sf:src() },
    },
  }
  txn:set_var("txn.limit_status", tostring(answer and answer.status or 0))
  local headers = answer and answer.headers
  for variable, name in pairs({ retry_after = "retry-after", ratelimit = "ratelimit", ratelimit_policy = "ratelimit-policy" }) do
    local value = first(headers, name)
    if value then
      txn:set_var("txn." .. variable, value)
    end
  end
end)
