"""Random inputs for a TokenNode."""

from stimulus import TILES, Stimulus, pack
from t3hdl.layouts import Token


class Node(Stimulus):
    """Tokens of few tiles, with counts whose sums reach the limit."""

    def token(self) -> int:
        rng = self.rng
        word = pack(
            Token,
            context=int(self.chance(0.1)), epoch=int(self.chance(0.1)), row=rng.randrange(TILES),
            col=rng.randrange(2), wf=int(self.chance(0.1)), bottom=self.chance(0.1),
            n=rng.choice((1, 1, 2, 511, 512, 1023)),
        )  # fmt: skip
        return self.blurred(word, range(Token["n"].offset)) if self.chance(0.2) else word

    def drive_part(self) -> None:
        for port in self.bench.inputs:
            if port.endswith(".valid"):
                self.offer(port.removesuffix(".valid"), self.token)
            elif port.endswith(".ready"):
                self.accept(port.removesuffix(".ready"))
