-- Run inside of a headless Neovim (0.7 or later) that has a config open: attach the server of DSMIGRATE_SERVER, wait for
-- diagnostics, ask for hover and completion, apply the preferred fix, wait for its diagnostic to go. Prints one JSON
-- object to standard output; exit code 0 when every step came to its end.
local buffer = vim.api.nvim_get_current_buf()
local seen = { steps = {} }

local function wait(step, condition)
  local done = vim.wait(120000, condition, 20)
  seen.steps[step] = done
  return done
end

local function at(text)
  for number, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) do
    local column = line:find(text, 1, true)
    if column then
      return { line = number - 1, character = column }
    end
  end
  error('no ' .. text)
end

local id
local function ask(method, params)
  params.textDocument = { uri = vim.uri_from_bufnr(buffer) }
  local answers = vim.lsp.buf_request_sync(buffer, method, params, 120000)
  local answer = answers and answers[id]
  return answer and answer.result
end

local function run()
  id = vim.lsp.start_client({
    name = 'dsmigrate',
    cmd = vim.split(os.getenv('DSMIGRATE_SERVER'), ' '),
    root_dir = vim.fn.getcwd(),
  })
  vim.lsp.buf_attach_client(buffer, id)
  local client
  wait('attached', function()
    client = vim.lsp.get_client_by_id(id)
    return client ~= nil and client.initialized
  end)
  wait('diagnosed', function() return #vim.diagnostic.get(buffer) > 0 end)
  seen.diagnostics = vim.tbl_map(function(item)
    return { line = item.lnum, column = item.col, code = item.code, message = item.message, severity = item.severity }
  end, vim.diagnostic.get(buffer))
  local hover = ask('textDocument/hover', { position = at('"stage"') })
  seen.hover = hover and hover.contents.value
  local completion = ask('textDocument/completion', { position = at('"complete_here"') })
  seen.completion = completion and vim.tbl_map(function(item) return item.label end, completion.items)

  local place = at('"overlap_com"')
  local range = { start = place, ['end'] = place }
  local actions = ask('textDocument/codeAction', { range = range, context = { diagnostics = {} } }) or {}
  seen.actions = vim.tbl_map(function(action) return action.title end, actions)
  for _, action in ipairs(actions) do
    if action.kind == 'quickfix' then
      local resolved = action
      if not action.edit then
        local answers = vim.lsp.buf_request_sync(buffer, 'codeAction/resolve', action, 120000)
        resolved = answers[id].result
      end
      vim.lsp.util.apply_workspace_edit(resolved.edit, client.offset_encoding)
      break
    end
  end
  wait('fixed', function()
    for _, item in ipairs(vim.diagnostic.get(buffer)) do
      if item.message:find('overlap_com`', 1, true) then return false end
    end
    return true
  end)
  seen.text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n') .. '\n'
  vim.lsp.stop_client(id)
  wait('stopped', function() return vim.lsp.get_client_by_id(id) == nil end)
end

local ok, problem = pcall(run)
seen.error = not ok and tostring(problem) or nil
io.stdout:write(vim.json.encode(seen) .. '\n')
vim.cmd(ok and 'qall!' or 'cquit 1')
