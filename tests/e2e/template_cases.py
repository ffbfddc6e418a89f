"""Conversations to render chat templates with."""
import copy

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Current weather in a city.\nUse it \"freely\" & often <b>.",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "The city's name, e.g. Zürich"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "fine": {"type": ["boolean", "null"]},
        "where": {"type": "object", "properties": {
            "lat": {"type": "number"}, "lon": {"type": "number"}}, "required": ["lat"]},
        "tags": {"type": "array", "items": {"type": "string"}}},
        "required": ["city"]}}}
SEARCH = {"type": "function", "function": {
    "name": "search", "description": "Search the web.",
    "parameters": {"type": "object", "properties": {
        "query": {"type": "string"},
        "filters": {"type": "array", "items": {"type": "object", "properties": {
            "key": {"type": "string"}, "value": {"anyOf": [{"type": "string"}, {"type": "number"}]}}}}},
        "required": ["query"], "additionalProperties": False},
    "return": {"type": "string"}, "strict": True}}
BARE = {"type": "function", "function": {
    "name": "now", "description": "", "parameters": {"type": "object", "properties": {}}}}
NO_PARAMETERS = {"type": "function", "function": {"name": "ping", "description": "Ping."}}


def call(name, arguments, id="call00001"):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


def system(text):
    return {"role": "system", "content": text}


def tool(text, **more):
    return {"role": "tool", "content": text, **more}


HI = user("Hi there!")
CALL_OBJECT = call("get_weather", {"city": "Zürich", "days": 3, "fine": True, "tags": ["a", "b"],
                                   "where": {"lat": 47.5, "lon": 8.0}, "unit": None})
CALL_STRING = call("get_weather", '{"city": "Zürich", "days": 3}')
RESULT = tool('{"temp": 21.5, "sky": "clear"}', tool_call_id="call00001", name="get_weather")

CONVERSATIONS = {
    "user": [HI],
    "system_user": [system("You are terse."), HI],
    "turns": [HI, assistant("Hello!"), user("And now?")],
    "turns_system": [system("Be kind."), HI, assistant("Hello!"), user("And now?"),
                     assistant("Now it is late."), user("  spaces  around \n")],
    "ends_assistant": [system("S"), HI, assistant("Hello!")],
    "unicode": [system("Ünïcödé 漢字 🙂"), user("naïve café — ‘quotes’ \u3000 e\u0301 👩‍👩‍👧"),
                assistant("Да, конечно. ﬁ ß İ"), user("\ttab\r\nCRLF\u2028sep")],
    "empty_strings": [system(""), user(""), assistant(""), user("x")],
    "null_content": [HI, assistant(None), user("x")],
    "no_content": [HI, {"role": "assistant"}, user("x")],
    "parts": [system("S"), {"role": "user", "content": [{"type": "text", "text": "What is this?"},
                                                         {"type": "text", "text": " Say it."}]}],
    "parts_image": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "See."}]}],
    "parts_image_url": [{"role": "user", "content": [
        {"type": "text", "text": "See."},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,xx"}}]},
        assistant([{"type": "text", "text": "I see."}]), user("ok")],
    "parts_system": [{"role": "system", "content": [{"type": "text", "text": "Sys"}]}, HI],
    "think_text": [HI, assistant("<think>\nhm, well\n</think>\n\nHello!"), user("more")],
    "reasoning": [HI, assistant("Hello!", reasoning_content="They greet me."), user("more")],
    "reasoning_last": [HI, assistant("Hello!", reasoning_content="They greet me.")],
    "reasoning_empty": [HI, assistant("Hello!", reasoning_content=""), user("more")],
    "reasoning_null": [HI, assistant("Hello!", reasoning_content=None, tool_calls=None), user("m")],
    "thinking_key": [HI, assistant("Hello!", thinking="Deep."), user("more"),
                     assistant("", thinking="Deeper.", tool_calls=[CALL_OBJECT]), RESULT],
    "call_object": [user("Weather?"), assistant("", tool_calls=[CALL_OBJECT]), RESULT],
    "call_string": [user("Weather?"), assistant("", tool_calls=[CALL_STRING]), RESULT],
    "call_null": [user("Weather?"), assistant(None, tool_calls=[CALL_OBJECT]), RESULT],
    "call_missing": [user("Weather?"), {"role": "assistant", "tool_calls": [CALL_OBJECT]}, RESULT,
                     assistant("It is fine."), user("Thanks")],
    "call_text": [system("S"), user("Weather?"), assistant("Let me look.", tool_calls=[CALL_OBJECT]),
                  RESULT, assistant("21.5 degrees."), user("Thanks")],
    "call_two": [user("Weather?"),
                 assistant("", tool_calls=[CALL_OBJECT, call("search", {"query": "a \"b\" <c>"},
                                                             "call00002")]),
                 RESULT, tool("found", tool_call_id="call00002", name="search"), assistant("Done.")],
    "call_reasoning": [user("Weather?"),
                       assistant("", reasoning_content="I need the tool.", tool_calls=[CALL_OBJECT]),
                       RESULT, assistant("Fine.", reasoning_content="Now I know."), user("Bye")],
    "call_empty_args": [user("Time?"), assistant("", tool_calls=[call("now", {})]),
                        tool("12:00", tool_call_id="call00001")],
    "call_bare": [user("Time?"), assistant("", tool_calls=[{"name": "now", "arguments": {"a": 1}}]),
                  tool("12:00")],
    "calls_empty": [HI, assistant("Hello!", tool_calls=[]), user("x")],
    "tool_parts": [user("Weather?"), assistant("", tool_calls=[CALL_OBJECT]),
                   {"role": "tool", "tool_call_id": "call00001",
                    "content": [{"type": "text", "text": "sunny"}]}],
    "tool_object": [user("Weather?"), assistant("", tool_calls=[CALL_OBJECT]),
                    {"role": "tool", "tool_call_id": "call00001", "name": "get_weather",
                     "content": {"temp": 1e22, "low": -0.0001, "ok": True, "n": None}}],
    "rounds": [system("S"), user("A?"), assistant("", tool_calls=[CALL_OBJECT]), RESULT,
               assistant("", tool_calls=[call("search", {"query": "q"}, "abcdef123")]),
               tool("r", tool_call_id="abcdef123"), assistant("Done."), user("B?"),
               assistant("", tool_calls=[call("now", {}, "zzzzzz999")]),
               tool("t", tool_call_id="zzzzzz999")],
    "developer": [{"role": "developer", "content": "Dev says."}, HI],
    "two_systems": [system("One."), system("Two."), HI],
    "system_late": [HI, system("Late."), user("x")],
    "two_users": [user("One."), user("Two.")],
    "assistant_first": [assistant("I begin."), user("ok")],
    "unknown_role": [HI, {"role": "narrator", "content": "Meanwhile"}, user("x")],
    "ipython": [HI, assistant("", tool_calls=[CALL_OBJECT]), {"role": "ipython", "content": "out"}],
    "function_role": [HI, assistant("", tool_calls=[CALL_OBJECT]),
                      {"role": "function", "name": "get_weather", "content": "out"}],
    "empty": [],
}
TOOL_SETS = {
    "none": None,
    "one": [WEATHER],
    "many": [WEATHER, SEARCH, BARE],
    "bare": [NO_PARAMETERS],
    "flat": [WEATHER["function"]],
    "empty": [],
}
BASE = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
DOCUMENTS = [{"title": "T1", "text": "First text."}, {"title": "T2", "text": "Second\ntext."}]
EXTRAS = {
    "thinking_on": {"enable_thinking": True, "thinking": True, "reasoning_effort": "high"},
    "thinking_off": {"enable_thinking": False, "thinking": False, "reasoning_effort": "low"},
    "thinking_none": {"enable_thinking": None, "reasoning_effort": None},
    "documents": {"documents": DOCUMENTS, "citation_mode": "accurate", "controls": {"length": "long"}},
    "dates": {"date_string": "26 Jul 2024", "current_date": "2024-07-26", "model_identity": "I am X."},
    "builtin": {"builtin_tools": ["browser", "python", "wolfram_alpha"], "code_interpreter": True,
                "tools_in_user_message": False},
    "xml": {"xml_tools": ["<t/>"], "python_tools": [], "keep_past_thinking": True,
            "preserve_thinking": True, "clear_thinking": False, "strip_thinking": True},
    "custom": {"custom_tools": [WEATHER], "skip_think": True, "add_vision_id": True,
               "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}},
    "functions": {"datetime": "2024-07-26 10:00", "functions": [WEATHER], "function_calls": []},
    "functions_text": {"datetime": "now", "functions": "[]"},
    "no_tokens": {"bos_token": None, "eos_token": ""},
}


def contexts():
    """(name, context) pairs: every conversation bare and with tools, and each extra on a few."""
    for name, messages in CONVERSATIONS.items():
        for tools in ("none", "many") if "call" in name or name in ("rounds", "user", "turns_system") \
                else ("none",):
            for add in (False, True):
                context = {**BASE, "messages": copy.deepcopy(messages), "add_generation_prompt": add}
                if TOOL_SETS[tools] is not None:
                    context["tools"] = TOOL_SETS[tools]
                yield f"{name}/{tools}/{add}", context
    for tools, given in TOOL_SETS.items():
        for name in ("system_user", "call_two"):
            yield f"{name}/{tools}", {**BASE, "messages": CONVERSATIONS[name], "tools": given,
                                      "add_generation_prompt": True}
    for extra, given in EXTRAS.items():
        for name in ("user", "turns_system", "reasoning", "call_reasoning", "parts_image"):
            for tools in ("none", "many"):
                yield f"{name}/{extra}/{tools}", {
                    **BASE, "messages": CONVERSATIONS[name], "tools": TOOL_SETS[tools],
                    "add_generation_prompt": True, **given}
    yield "nothing", {}
    yield "messages_only", {"messages": CONVERSATIONS["turns"]}
    yield "messages_null", {**BASE, "messages": None, "add_generation_prompt": True}
