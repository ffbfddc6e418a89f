#include "agent/toolcall.h"

#include <string.h>

/* In the order in which they are looked for: the first whose marker the template has. */
static const gn_tool_format formats[] = {
    {.name = "mistral",
     .marker = "[TOOL_CALLS]",
     .trigger = "[TOOL_CALLS]",
     .many = true,
     .open = "[TOOL_CALLS][",
     .between = ", ",
     .close = "]",
     .arguments = "arguments",
     .id_len = 9},
    {.name = "granite",
     .marker = "<|tool_call|>",
     .trigger = "<|tool_call|>",
     .many = true,
     .open = "<|tool_call|>[",
     .between = ", ",
     .close = "]",
     .arguments = "arguments"},
    {.name = "nemotron",
     .marker = "<TOOLCALL>",
     .trigger = "<TOOLCALL>",
     .many = true,
     .open = "<TOOLCALL>[",
     .between = ", ",
     .close = "]</TOOLCALL>",
     .arguments = "arguments"},
    {.name = "firefunction",
     .marker = " functools[",
     .trigger = " functools[",
     .many = true,
     .open = " functools[",
     .between = ", ",
     .close = "]",
     .arguments = "arguments"},
    {.name = "llama3",
     .marker = "\"parameters\": ",
     .trigger = "{\"name\":",
     .at_start = true,
     .open = "",
     .between = "",
     .close = "",
     .arguments = "parameters"},
};

#define HERMES                                                                                     \
    .trigger = "<tool_call>", .many = true, .open = "<tool_call>\n",                               \
    .between = "\n</tool_call>\n<tool_call>\n", .close = "\n</tool_call>",                         \
    .arguments = "arguments"
static const gn_tool_format hermes = {.name = "hermes", .marker = "<tool_call>", HERMES};
static const gn_tool_format told = {.name = "told", .told = true, HERMES};

const gn_tool_format *gn_toolcall_format(const char *chat_template)
{
    if (chat_template == NULL) {
        return &told;
    }
    /* "<function=" is Qwen3-Coder's XML, "<arg_key>" GLM's: another inside of the same tags. */
    if (strstr(chat_template, hermes.marker) != NULL) {
        bool other = strstr(chat_template, "<function=") != NULL ||
                     strstr(chat_template, "<arg_key>") != NULL;
        return other ? &told : &hermes;
    }
    for (size_t i = 0; i < GN_COUNTOF(formats); i++) {
        bool python = strstr(chat_template, "<|START_ACTION|>") != NULL;
        if (!python && strstr(chat_template, formats[i].marker) != NULL &&
            strstr(chat_template, "tools") != NULL) {
            return &formats[i];
        }
    }
    return &told;
}
