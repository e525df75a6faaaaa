"""Function words of each language by which the form of a rule is recognized. Pure.

Negations and conditions are those of `memd.belief.polarity`; here is what else stands around a command, a file or code.
"""

import re
from typing import Literal

from memd.text import fold

Anchor = Literal["done", "commit", "push", "pull request"]


def _compile_forms(english: str, *others: str) -> re.Pattern[str]:
    """Compile a pattern of folded words: the English forms, short words of other languages, the beginnings of longer ones."""
    words = " ".join(others).split()
    exact = [*english.split(), *(word for word in words if len(word) < PREFIX_MIN)]
    prefixes = [word for word in words if len(word) >= PREFIX_MIN]
    return re.compile(rf"(?:(?:{'|'.join(exact)})\Z|(?:{'|'.join(prefixes)}))")


def _set(*lines: str) -> frozenset[str]:
    return frozenset(fold(word) for word in " ".join(lines).split())


PREFIX_MIN = 5
EXECUTE = _compile_forms(
    "run runs ran running execute executes executed executing call calls called calling invoke invoked invoking launch launched start started starting",
    "fuhre fuhren fuhrt ausfuhr ausgefuhrt aufruf starte lasse lance lancer lancez execut appel ejecut corre corras lanza lanzes llames llama esegu lanciar chiamar",
    "rode rodes rodar chame draai voer start roep uruch wywol odpal запуск запуст вызыв выполн запуска spoust volej kora korer kjor calistir ajaa futtat rula jalankan",
)  # fmt: skip
USE = _compile_forms(
    "use uses used using want wants pass passed passing issue try type typed",
    "benutz verwend nutze nutzt nutzen nimm nehme nehmen utilis emploi emploie usa use uso usar uses usen usare usiamo utiliz utilizz gebruik uzywa uzyj",
    "использ примен використов pouziv nepouziv anvand brug bruge bruk bruke bruker kullan kayta hasznal folos folosi pakai gunakan",
)  # fmt: skip
TOUCH = _compile_forms(
    "touch touches touched touching edit edits edited editing modify modified modifying change changes changed changing write writes written writing"
    " update updated updating delete deleted deleting alter altered overwrite overwritten rewrite rewritten create created",
    "fasse fass anfass anzufass angefass andern andere andert geandert bearbeit editier losche loschen ruhre anruhr schreib uberschreib touche modifi change edite editer"
    " supprim ecris ecrire toque toca toques tocar modifiq modifiqu cambi cambie cambies borre borres elimin escrib tocca toccare modifica cancell scriver mexa mexas mexer altere"
    " alterar alteres mude mudar apague escrev wijzig aanpass bewerk raak verander schrijf verwijder edytuj zmieni ruszaj dotyka modyfik usuwa трога тронь изменя измени правь"
    " правит редакт удаля удали перепис змінюй редаг uprav nesahej neupravuj nemazat mazat ror rors andra andre redig rediger dokun degistir duzenle muokka szerkeszt ubah sunting",
)  # fmt: skip
WRITE = _compile_forms(
    "use uses used using add adds added adding write writes writing written introduce introduced call calls put import imports insert leave want wants",
    "benutz verwend nutze nutzen schreib fuge utilis ajout ecris emploie usa use uses usar anad agreg escrib utilizz aggiung scriv adicion escrev gebruik voeg schrijf uzywa dodaw"
    " использ добавл пиши pouziv anvand lagg skriv brug bruk kullan ekle",
)  # fmt: skip
SIGNS = {
    "run": re.compile(
        "[用跑]|し[なま]|하지|使[用うわ]?|运行|執行|执行|调用|実行|走らせ|叩[かく]|사용|실행|쓰지|돌리"
    ),
    "touch": re.compile(
        "[改动動碰删刪触]|修改|编辑|編集|変更|修正|削除|수정|건드|변경|편집|삭제|만지"
    ),
    "write": re.compile("[用写寫書加]|使[用うわ]?|添加|追加|사용|쓰지|추가"),
}
CONDITION_SIGNS = re.compile("如果|除非|的时候|場合|とき|なら|경우|면 ")
ANCHORS: dict[Anchor, re.Pattern[str]] = {
    "commit": _compile_forms("commits", "commit коммит комміт"),
    "push": _compile_forms("push pushes pushing pushed", "pushen pusher pousser пушем пушить пушишь пушит"),
    "pull request": _compile_forms("pr prs pull", "pullreq"),
    "done": _compile_forms(
        "done finish finished finishing finishes complete completed completing completion say saying stop stopping report reporting hand handing ready"
        " declare declaring claim claiming end ending",
        "fertig abschlie abschluss beende beenden schluss ende termin terminer finir fini finis acabar acabes lista listo finaliz finire concluir concluy pronto pronta"
        " klaar afrond skoncz konczy zakonc gotowe ukonc hotovo dokonc готово законч заверш klar fardig avslut faerdig afslut ferdig bitir bitti tamamla valmis befejez gata",
    ),
}  # fmt: skip
BEFORE = _set(
    "before bevor vor avant antes prima przed zanim перед до voor voordat innan for før inden pred nez než înainte sebelum ennen"
)
BEFORE_WORDS = BEFORE - {"for"}
ANCHOR_SIGNS: dict[Anchor, str] = {
    "commit": "コミット|提交|커밋", "push": "推送|プッシュ|푸시", "pull request": "プルリク|PR", "done": "完成|结束|結束|完了|終わ|終え|완료|끝",
}  # fmt: skip
BEFORE_AFTER, BEFORE_LAST = re.compile("之前|前に|前|전에"), frozenset({"önce", "előtt"})
WITHOUT = _set(
    "without ohne sans sin senza sem zonder utan uden uten bez без tanpa olmadan nelkul fara ilman"
)
INSTEAD = _set(
    "instead rather statt anstatt anstelle lieu lugar vez invece plaats istallet stedet zamiast misto вместо замість umjesto"
)
INSTEAD_AFTER = _set("yerine helyett sijaan")
INSTEAD_SIGNS = re.compile("的代わり|の代わり|代わり|ではなく|대신|말고")
INSTEAD_FIRST = re.compile("而不是|而非|代替")
WITH = _set("with mit avec con com met z с з med s ile cu kanssa dengan")
LIMITING_NEGATIONS = _set(
    "only just nur seulement uniquement solo sólo só somente apenas alleen bara endast kun tylko jen sadece только лишь лише hanya csak doar vain samo само μόνο",
    "didnt wasnt werent couldnt doesnt havent hasnt hadnt cant cannot wont wouldnt",
    "nada nic niente rien ничего nichts nulla niets ingenting",
    "remove removed drop skip skips refuse refuses reject rejects rejected except unlike nothing nobody none neither nor nope nah weder ni ani né nem sondern",
)  # fmt: skip
"""Words that deny or leave out, but forbid nothing that follows them."""
HALF_NEGATIONS = _set("ne n не")
"""Deny by themselves only where no other word of their clause does."""
NEVER = _set(
    "never ever nie niemals jamais nunca jamas mai nooit aldrig nigdy nikdy никогда ніколи soha niciodata asla koskaan"
)
REASONS = _set(
    "because since as weil da denn parce car porque pues perche poiche omdat ponieważ потому чтобы protoze eftersom fordi cunku koska mert karena kvůli"
)
FOLLOWERS = _set(
    "and but und aber sondern oder et mais y e pero sino ma bensi mas maar ale и а но och og ve ama mutta hanem"
)
AFTER = _set("after nach apres despues dopo depois na po после efter jalkeen utan sonra")
WHEN = _set(
    "when while whenever where wenn wahrend quand lorsque cuando mientras quando mentre wanneer terwijl kiedy gdy когда kdyz nar unless until"
)
LINKS = _set("have has need needs include includes on to for auf fur pour para")
NAMES = _set("git branch branches anything")
FILLERS = _set(
    "ever the a an any of to please be directly der die das den dem ein eine le la les un une du de des d el los las lo il gli i o os as da do het een mir bitte bare plain is are be ist sind est sont es son e sono sao zijn jest sa",
)  # fmt: skip
AROUND = FILLERS | _set(
    "here in this our repo repository project projects codebase again anymore at all command commands tool flag option directory directories folder folders",
    "by hand manually yourself comment comments hagas haga hacer haz faire fais mach machen fare fai faca fazer doen",
    "von hand mano reka вручную file files package manager you we agent agents should must may can always inside under anything everything it is are",
    "hier diesem projekt im unser befehl datei dateien verzeichnis ordner darf dürfen soll sollen wird werden man immer an aus auf ici dans ce projet depot toujours",
    "aqui en este proyecto siempre se qui questo progetto sempre si neste projeto hier dit project niet we wij tutaj w tym projekcie здесь в этом проекте нельзя здесь",
    "or and und oder et ou y e o und och och og of en ili или и be been being was were gets get being do does done ever nothing something",
    "em unter dans sous bajo sob onder under pod nel nella within",
    "har i det nie pas plus rien using sein not calls call anywhere code casts cast",
)  # fmt: skip
"""Words that limit nothing."""
FORBIDDEN = _set(
    "forbidden banned disallowed verboten untersagt interdit interdite prohibido prohibida vietato proibido verboden zabronione zakazano yasak запрещено запрещен запрещён заборонено"
)
"""Words that forbid what stands before them."""
FORBIDDEN_SIGN = re.compile("禁止|금지")
PRONOUNS = _set(
    "it them that those these es sie ihn le les la lo los las ello eso ze его их её ним je ich"
)
PLACES = _set("to on in into onto for from during at auf nach fur sur pour dans para su per")
