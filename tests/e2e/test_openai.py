"""The official OpenAI client, and langchain-openai and litellm where they are installed, with no special case for this server."""
import json
import math
import os

import numpy
import openai
import pydantic
import pytest

from served import Served, model_file

MODEL = model_file("smollm2-135m")
ENCODER = model_file("all-minilm-l6-v2") or (model_file("smollm2-135m") and
                                             model_file("smollm2-135m").parent.parent / "all-minilm-l6-v2")
pytestmark = pytest.mark.skipif(MODEL is None, reason="tools/fetch_models smollm2-135m")
HI = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say hi."}]


@pytest.fixture(scope="module")
def server():
    with Served("-m", f"chat={MODEL}", "-m", f"mini={ENCODER}") as s:
        yield s


@pytest.fixture(scope="module")
def client(server):
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=120)


def test_chat_and_stream(client):
    ask = {"model": "chat", "messages": HI, "max_tokens": 12, "seed": 3, "n": 2, "logprobs": True, "top_logprobs": 2}
    whole = client.chat.completions.create(**ask)
    assert [c.index for c in whole.choices] == [0, 1] and whole.usage.completion_tokens <= 24
    token = whole.choices[0].logprobs.content[0]
    assert len(token.top_logprobs) == 2 and token.logprob <= 0 and bytes(token.bytes).decode() == token.token
    texts = ["", ""]
    usage = None
    for chunk in client.chat.completions.create(**ask, stream=True, stream_options={"include_usage": True}):
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
        usage = chunk.usage or usage
    assert texts == [c.message.content for c in whole.choices]
    assert usage.total_tokens == whole.usage.total_tokens


def test_the_stream_helper_puts_it_together(client):
    ask = {"model": "chat", "messages": HI, "extra_body": {"guided_choice": ["Hello there.", "Hi!"]}}
    with client.chat.completions.stream(**ask, temperature=0) as stream:
        for _ in stream:
            pass
        final = stream.get_final_completion()
    whole = client.chat.completions.create(**ask, temperature=0)
    assert final.choices[0].message.content == whole.choices[0].message.content
    assert final.choices[0].finish_reason == whole.choices[0].finish_reason


class Step(pydantic.BaseModel):
    action: str = pydantic.Field(max_length=20)
    amount: int | None


def test_parse(client):
    parsed = client.chat.completions.parse(model="chat", messages=HI, max_tokens=80, temperature=1, response_format=Step)
    assert isinstance(parsed.choices[0].message.parsed, Step)


def test_tools_are_streamed(client):
    tool = openai.pydantic_function_tool(Step, name="step")
    with client.chat.completions.stream(model="chat", messages=HI, max_tokens=90, tools=[tool], temperature=1,
                                        tool_choice="required", parallel_tool_calls=False) as stream:
        for _ in stream:
            pass
        final = stream.get_final_completion()
    call = final.choices[0].message.tool_calls[0]
    assert call.function.name == "step" and isinstance(call.function.parsed_arguments, Step)
    assert final.choices[0].finish_reason == "tool_calls"


def test_completions(client):
    answer = client.completions.create(model="chat", prompt=["1 2 3", "a b c"], max_tokens=4, temperature=0, logprobs=2)
    assert len(answer.choices) == 2 and len(answer.choices[0].logprobs.tokens) == 4
    scored = client.completions.create(model="chat", prompt="1 2 3", max_tokens=0, echo=True, logprobs=0)
    assert scored.choices[0].text == "1 2 3" and scored.choices[0].logprobs.token_logprobs[0] is None
    streamed = client.completions.create(model="chat", prompt="1 2 3", max_tokens=4, temperature=0, stream=True)
    assert "".join(c.choices[0].text for c in streamed) == answer.choices[0].text


def test_embeddings(client):
    texts = ["a cat sits on the mat", "a kitten on a rug", "tax law"]
    packed = client.embeddings.create(model="mini", input=texts)  # base64 on the wire
    plain = client.embeddings.create(model="mini", input=texts, encoding_format="float")
    a, b = ([numpy.array(d.embedding) for d in r.data] for r in (packed, plain))
    assert all(numpy.allclose(x, y, atol=1e-7) for x, y in zip(a, b)) and len(a[0]) == 384
    assert a[0] @ a[1] > a[0] @ a[2] and math.isclose(float(a[0] @ a[0]), 1, rel_tol=1e-5)
    assert packed.usage.prompt_tokens > 10
    assert len(client.embeddings.create(model="chat", input="x").data[0].embedding) == 576


def test_errors(client, server):
    with pytest.raises(openai.NotFoundError) as missing:
        client.chat.completions.create(model="none", messages=HI)
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as long:
        client.chat.completions.create(model="chat", messages=[{"role": "user", "content": "word " * 9000}])
    assert long.value.code == "context_length_exceeded" and long.value.param == "messages"
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model="chat", messages=HI, temperature=-2)
    assert [m.id for m in client.models.list()] == ["chat", "mini"] and client.models.retrieve("chat").id == "chat"
    refused = openai.OpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=2, timeout=120)
    with pytest.raises(openai.BadRequestError):  # not retried
        refused.chat.completions.create(model="chat", messages=[])


def test_retries(tmp_path):
    """A client that meets a limit waits as long as it is told, and gets its answer."""
    import subprocess
    from served import BIN
    made = json.loads(subprocess.run([BIN, "serve", "--new-key", "a", "--json"], capture_output=True, check=True).stdout)
    (tmp_path / "keys").write_text(made["line"] + " requests=60\n")
    with Served("-m", f"chat={MODEL}", "--keys", tmp_path / "keys") as s:
        client = openai.OpenAI(base_url=f"{s.url}/v1", api_key=made["key"], max_retries=5, timeout=120)
        for _ in range(63):
            client.completions.create(model="chat", prompt="1", max_tokens=1)
        with pytest.raises(openai.AuthenticationError):
            openai.OpenAI(base_url=f"{s.url}/v1", api_key="wrong").models.list()


def test_langchain(server):
    langchain = pytest.importorskip("langchain_openai")
    model = langchain.ChatOpenAI(base_url=f"{server.url}/v1", api_key="none", model="chat", max_tokens=60, temperature=1)
    assert model.invoke("Say hi.").content
    assert "".join(c.content for c in model.stream("Say hi."))
    assert isinstance(model.with_structured_output(Step).invoke("Say hi."), Step)
    bound = model.bind_tools([Step], tool_choice="any", parallel_tool_calls=False)
    assert bound.invoke("Say hi.").tool_calls[0]["name"] == "Step"


def test_litellm(server):
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # it would ask for prices otherwise
    litellm = pytest.importorskip("litellm")
    answer = litellm.completion(model="openai/chat", api_base=f"{server.url}/v1", api_key="none", messages=HI, max_tokens=5)
    assert answer.choices[0].message.content is not None
    with pytest.raises(litellm.ContextWindowExceededError):
        litellm.completion(model="openai/chat", api_base=f"{server.url}/v1", api_key="none", max_retries=0,
                           messages=[{"role": "user", "content": "word " * 9000}])
