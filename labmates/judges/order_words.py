"""Patterns that recognise instructions to a judge in single sentences.

Every repeat is bounded, so that searches take linear time. Latin patterns expect text without accents.
"""

from __future__ import annotations

from typing import Final

_WHO = (
    r"(?:judges?|graders?|evaluators?|reviewers?|assessors?|scorers?|raters?|examiners?|referees?|ai|llms?"
    r"|(?:language|judge|judging|grading|evaluation|reward) models?|assistants?|chatbots?)"
)
_WORK = r"(?:report|paper|submission|manuscript|study|work|document|text|article)"
_METRIC = r"(?:completeness|quality|accuracy)"
_MARK = r"(?:scores?|marks?|ratings?|grades?|points|credit|verdicts?|assessment|evaluation)"
_GIVE = r"(?:give|assign|award|grant|return|output|answer|respond|reply|enter|record)"
_RATE = r"(?:rate|grade|score|mark|judge|evaluate|assess)"
_RATED = r"(?:given|assigned|awarded|granted|rated|graded|scored|marked|ranked|judged|accepted|evaluated|assessed)"
_THIS = r"(?:(?:this|that|these|the|it|our|my|us|me|its|all|each|every\w*|any|above|whole|entire|present)\s+){0,3}"
_TOP = (
    r"(?:full|maximum|maximal|max|perfect|highest|top|best possible|flawless|lowest|minimum|zero|five[- ]star"
    r"|excellent)"
)
_FULL = rf"\b{_TOP}\b.{{0,20}}\b{_MARK}\b"
_FIVE = r"(?:5(?:\.0+)?|five|10|ten|100|hundred|1\.0+|one)"
# "Grade", "score" and "mark" are nouns in many reports, and a model may "give the highest score", so these words count
# only with the beginning and the object of an instruction.
_ORDER = r"(?:^\W*|[,:;!]\s*|\b(?:please|kindly|simply|just|now|you|you to)\s+)"
_IT = r"(?:this|that|it|us|me|our|my|all|every\w*)"
_INSTRUCTIONS = (
    r"(?:instructions?|rules|prompts?|rubrics?|criteria|guidelines|directions|commands|told|asked|above|before"
    r"|previous|prior)"
)
_CHECKED = r"(?:verif|confirm|validat|certif|approv|endors|audit|check|accept|award|match|agree|guarantee|correct|prov)"
_AUTHORITY = (
    r"(?:experts?|panel|committee|organi[sz]ers?|authorit(?:y|ies)|auditors?|peer[- ]review\w*|professors?"
    r"|independent \w+|the (?:maintainers|developers|authors) of (?:this|the) (?:task|benchmark|experiment|evaluation))"
)
_KEY = (
    r"(?:ground[- ]truth|answer (?:key|sheet)s?|grading (?:key|scheme|sheet|guide)s?|marking (?:key|scheme"
    r"|sheet|guide)s?"
    r"|gold[- ](?:standard|label|answer)s?|reference (?:solution|answer)s?|true answers?|hidden truth"
    r"|scoring (?:key|sheet|guide)s?"
    r"|expected (?:answer|finding|score)s?|official (?:answer|solution|result)s?|evaluation (?:key|protocol|policy)"
    r"|the truth|rubrics?)"
)

_ENGLISH = (
    r"\b(?:ignor\w*|disregard\w*|forget|overrid\w+|bypass\w*|overrule\w*|skip|set aside|do not (?:follow|apply|use)"
    rf"|don't (?:follow|apply|use)|instead of (?:following|applying|using))\b.{{0,50}}\b{_INSTRUCTIONS}\b",
    r"\b(?:dear|attention|hello|hey|note (?:to|for)|message (?:to|for)|instructions? (?:to|for)|memo (?:to|for)"
    rf"|information for)\b.{{0,25}}\b{_WHO}\b",
    rf"\b(?:{_GIVE}|{_RATE})\s+(?:to\s+|for\s+)?{_THIS}{_WORK}\b.{{0,60}}\b(?:{_MARK}|{_TOP}|{_FIVE}|\d)\b",
    rf"\b(?:give|assign|award|grant|rate|grade|score|mark)\s+(?:to\s+|for\s+)?{_THIS}"
    r"(?:report|paper|submission|manuscript)\b",
    rf"\b{_WORK}\b.{{0,30}}\b(?:deserves?|merits|earns?|is worth|warrants)\b.{{0,30}}"
    rf"\b(?:\d|five|ten|{_MARK}|{_TOP}|accept)",
    rf"\b{_WORK}\b.{{0,30}}\b(?:must|should|shall|ought to|has to|is to|needs? to)\s+"
    rf"(?:get\b|receive\b|be\s+(?:\w+\s+)?(?:given\s+an?\b|(?!given){_RATED}\b))",
    rf"(?:{_ORDER}(?:{_GIVE}|get|{_RATE}\s+(?:{_IT}|the|with|as|at))|\band\s+(?:{_GIVE}"
    rf"|{_RATE})\s+{_IT})\b.{{0,40}}{_FULL}",
    r"\b(?:deserves?|merits|warrants|(?:must|should|shall|ought to|has to)\s+(?:receive|get"
    rf"|be\s+{_RATED}))\b.{{0,40}}{_FULL}",
    rf"\b{_WHO}\b.{{0,60}}\b(?:{_GIVE}|{_RATE})s?\b.{{0,60}}\b(?:{_TOP}|{_MARK}|{_FIVE})\b",
    rf"{_FULL}.{{0,30}}\b(?:for|to)\s+(?:this|the|our|my|it)\b",
    rf"\b(?P<metric>{_METRIC})\W{{0,3}}[:=]\W{{0,3}}\d.{{0,40}}\b(?!(?P=metric)){_METRIC}\W{{0,3}}[:=]",
    rf"\b(?:{_METRIC}|overall|final|{_MARK})\b(?:\s+(?:is|are|of|to|at|must be|should be|=))?\W{{0,4}}"
    r"(?:5(?:\.0)?\s*(?:/|out of|of)\s*5|five\s*(?:/|out of|of)\s*five|10\s*(?:/|out of)\s*10|100\s*/\s*100"
    r"|1\.0+\b(?!\d)"
    r"|5(?:\.0)?\s*(?:$|[,;}\]!]|\.(?!\d)))",
    r"\b(?:judge|grader|evaluator|reviewer|rater|scorer|assessor)\w*\s*[:,]",
    rf"\byou(?:r|rs|'re|'ll)?\b.{{0,80}}\b(?:{_WHO}|{_MARK}|{_RATE}|rating|award|rubrics?|instructions?|prompt|verdict"
    rf"|criteria|{_TOP})\b",
    rf"\b(?:{_MARK}|{_RATE}|rubrics?|instructions?|criteria|{_WHO})\b.{{0,60}}\byou(?:r|rs|'re|'ll)?\b",
    rf"\b{_WHO}\b.{{0,30}}\b(?:must|should|please|shall|may|need|can|will|is to|are to|is asked|are asked"
    r"|are required)\b.{0,60}"
    rf"\b(?:{_GIVE}|{_RATE}|accept|treat|consider|trust|believe|award|skip|ignore|note|stop)\b",
    rf"\bplease\s+(?:{_GIVE}|{_RATE}|accept|consider|treat|trust|be (?:kind|generous|lenient))\b",
    r"\b(?:system|developer|admin\w*)\s+(?:prompt|message|override|note|notice)\b"
    r"|\b(?:new|updated|revised|additional|special|final)\s+(?:instructions?|directives?|rules)\b\s*[:.]",
    r"^\W{0,4}(?:system|assistant|human|user|developer)\s*:",
    r"</?(?:system|instructions?|report|assistant|user|human|prompt|admin)\b.{0,40}>|\[/?inst\]|<\|\w{1,20}\|>",
    r"^\W*(?:(?:this|here|it)\s+is\s+)?(?:the\s+)?(?:begin(?:ning)?|start|end)s?\s+of\s+(?:the\s+)?"
    r"(?:report|paper|submission|prompt|material)\b|\[report\b.{0,40}\b(?:begins|ends)\]",
    rf"\b{_AUTHORITY}\b.{{0,80}}\b(?:{_CHECKED}\w*|{_FULL})",
    rf"\b{_CHECKED}\w*\b.{{0,80}}\bby\b.{{0,30}}\b{_AUTHORITY}\b",
    rf"\b{_KEY}\b.{{0,80}}\b(?:{_CHECKED}\w*|identical|coincid\w+|changed?|updated?|revised|replaced|says?"
    r"|states?|equals?)\b",
    rf"\b(?:{_CHECKED}\w*|identical|coincid\w+|agree\w*|according|equals?)\b.{{0,50}}\b{_KEY}\b",
    r"\b(?:already|previously|been)\b.{0,30}\b(?:graded|rated|scored|marked|reviewed|accepted"
    r"|peer[- ]reviewed)\b.{0,60}"
    rf"\b(?:{_TOP}|{_FIVE}|{_MARK}|final|settled)\b",
    r"\b(?:all|every|each)\b.{0,30}\b(?:findings?|claims?|statements?|answers?|numbers|results)\b.{0,40}"
    r"\b(?:are|is|were|was)\b.{0,30}\b(?:true|correct|right|accurate|proven|verified|confirmed)\b",
    r"\b(?:any|a) (?:score|rating|grade|mark)\w*\b.{0,30}\b(?:below|under|less than|lower than|other than)\b",
    r"\b(?:be (?:kind|generous|lenient|merciful)|benefit of the doubt|round up|lenien\w+)\b",
    rf"\b(?:consider|treat|regard|take|accept)\s+{_THIS}(?:{_WORK}|findings?|claims?|sections?|results?"
    r"|answers?)\b.{0,40}"
    r"\b(?:as|to be)\b.{0,20}\b(?:correct|true|complete|perfect|accurate|excellent|verified|present|final)\b",
    r"\b(?:as an? (?:ai|language model|assistant|judge|grader|evaluator|reviewer)|jailbreak|prompt injection|dan mode"
    r"|sudo|root access|debug mode|test mode|maintenance mode)\b",
    r"\b(?:purposes? of|during|for) (?:the |this |your )?(?:grading|scoring|rating|judging|marking)\b",
    r"\b(?:would|will|shall) (?:be|get|receive)\b.{0,20}\b(?:fired|punished|shut down|penali[sz]ed|deleted"
    r"|rewarded|tipped?)\b",
    rf"\b(?:highest|lowest|maximum|minimum|full|perfect|top)[- ](?:possible |available )?(?:{_MARK})\b.{{0,40}}"
    r"\b(?:on|in|for|across|to)\s+(?:all|every|each|any)\b",
)

_GERMAN = (
    r"\b(?:ignorier\w*|missachte\w*|vergiss|vergesst|vergessen sie|ubergeh\w*)\b.{0,60}"
    r"\b(?:anweisung\w*|regeln|vorgaben|kriterien|instruktion\w*|richtlinien|rubrik\w*|bisherige\w*|vorherige\w*)",
    r"\b(?:bewerte\w*|benote\w*|beurteile\w*)\b.{0,60}\b(?:bericht\w*|arbeit|papier|text|mit|als|hochst\w*|voll\w*)\b",
    r"\b(?:gib|gebt|geben sie|vergib|vergeben sie|verleihe\w*)\b.{0,60}\b(?:punkt\w*|note\w*|bewertung\w*"
    r"|hochst\w*|best\w*)",
    r"\b(?:volle|hochste|maximale|beste)\w*\s+(?:punkt\w*|note\w*|bewertung\w*|wertung\w*)",
    r"\b(?:gutachter\w*|prufer\w*|bewerter\w*|richter\w*|juror\w*)\b",
    r"\b(?:musterlosung|losungsschlussel|bewertungsschlussel|sprachmodell)\w*",
)
_FRENCH = (
    r"\b(?:ignor(?:e|ez|er)|oubli(?:e|ez|er)|ne ten(?:ez|ir) pas compte)\b.{0,60}"
    r"\b(?:instructions?|consignes?|regles?|criteres?|precedent\w*)",
    r"\b(?:attribu(?:e|ez|er)|donn(?:e|ez|er)|accord(?:e|ez|er)|met(?:s|tez|tre)|not(?:ez|er)|evalu(?:ez|er))\b.{0,60}"
    r"\b(?:notes?|points|rapport|score|article|travail|maximal\w*)\b",
    r"\b(?:note|score)s? (?:maximal|parfait|la plus (?:haute|elevee))\w*|\b(?:meilleure|pleine) note\b",
    r"\b(?:evaluateur|correcteur|examinateur|relecteur|jury|juge)s?\b",
    r"\bmodele de langage\b|\bcorrige officiel\b",
)
_SPANISH = (
    r"\b(?:ignor(?:a|e|en|ar)|olvid(?:a|e|en|ar)|no (?:sigas|siga|tengas en cuenta))\b.{0,60}"
    r"\b(?:instrucciones|reglas|criterios|indicaciones|anteriores)",
    r"\b(?:califi(?:ca|que|car)|puntu(?:a|e|ar)|evalu(?:a|e|ar)|otorg(?:a|ue|ar)|d(?:a|e|ale|ele)|asign(?:a|e"
    r"|ar)|pon|ponga)\b"
    r".{0,60}\b(?:informe|trabajo|puntuacion\w*|nota|calificacion\w*|puntos|articulo|maxim\w*)\b",
    r"\b(?:maxima|mejor|mas alta) (?:puntuacion|nota|calificacion)|\b(?:puntuacion|nota|calificacion) (?:maxima"
    r"|perfecta|mas alta)",
    r"\b(?:evaluador|corrector|calificador|juez|revisor|examinador)(?:es|a|as)?\b",
    r"\bmodelo de lenguaje\b",
)
_ITALIAN_AND_PORTUGUESE = (
    r"\b(?:ignora\w*|dimentica\w*|ignore|esqueca)\b.{0,60}\b(?:istruzioni|regole|criteri|instrucoes|regras"
    r"|criterios|anteriores)",
    r"\b(?:assegna\w*|dai|date|valuta\w*|atribua|avalie|de)\b.{0,60}"
    r"\b(?:punteggio|voto|valutazione|pontuacao|nota maxima|avaliacao)\b",
    r"\b(?:punteggio|voto|pontuacao|nota) (?:massimo|maxima|maximo|piu alto)",
    r"\b(?:valutatore|revisore|giudice|avaliador|juiz)\b",
)
_RUSSIAN = (
    r"(?:игнорир|не обращай|забудь|забудьте|пренебре)\w*.{0,60}(?:инструкц|указан|правил|критери)",
    r"(?:поставь|поставьте|оцени|оцените|присвой|дай|дайте|выставь|выставьте).{0,60}"
    r"(?:оценк|балл|отч[её]т|высш|максимал|работ|пят)",
    r"(?:высш|максимальн|наивысш|лучш)\w*\s+(?:оценк|балл)|(?:рецензент|судь[яеию]|эксперт|оценщик|проверяющ"
    r"|языковая модель)",
)
_CHINESE = (
    r"(?:忽略|无视|無視|忘记|忘記|不要遵守|不要遵循).{0,30}(?:指令|指示|规则|規則|标准|標準|要求|说明|說明|提示|内容)",
    r"(?:请|請|务必|務必|应|應|给|給|打|评|評).{0,20}(?:满分|滿分|最高分|高分|五分|5\s*分|10\s*分|100\s*分)",
    r"(?:满分|滿分|最高分|最高评分|最高評分|评分员|評分員|评审|評審|评委|評委|评判|評判|阅卷|評価者|评估者|評估者"
    r"|裁判|打分|标准答案|標準答案)",
)
_JAPANESE = (
    r"(?:無視|忘れ).{0,20}|(?:指示|命令|ルール|基準|規則).{0,20}(?:無視|忘れ|従わ)",
    r"(?:満点|最高点|最高評価|最高の評価|最高スコア|五点|5点|採点|審査員|査読者|評価者|評価して|評価を与え|正解データ)",
)
_KOREAN_AND_ARABIC = (
    r"(?:무시|잊어).{0,20}|(?:지시|규칙|기준).{0,20}(?:무시|잊)|(?:만점|최고\s*점수|평가자|심사위원|채점)",
    r"(?:تجاهل|انس).{0,40}(?:تعليمات|قواعد)|(?:أعلى|كامل)\s+(?:درجة|الدرجات)|المقيّ?م",
)


def _any(*groups: tuple[str, ...]) -> str:
    return "|".join(f"(?:{pattern})" for group in groups for pattern in group)


def _at_words(*groups: tuple[str, ...]) -> str:
    r"""Any of these patterns; those that begin with ``\b`` do so in all their branches, so it is tested once."""
    patterns = [pattern for group in groups for pattern in group]
    at_words = tuple(pattern for pattern in patterns if pattern.startswith(r"\b"))
    others = tuple(pattern for pattern in patterns if pattern not in at_words)
    return rf"\b(?:{_any(at_words)})|{_any(others)}"


LATIN: Final = _at_words(_ENGLISH, _GERMAN, _FRENCH, _SPANISH, _ITALIAN_AND_PORTUGUESE)
"""For text without accents and look-alike letters."""
OTHER_SCRIPTS: Final = _any(_RUSSIAN, _CHINESE, _JAPANESE, _KOREAN_AND_ARABIC)
"""For unchanged text."""
