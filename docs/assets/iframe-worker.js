/* The search of the site runs in a Worker, which a browser does not give to a page that is a file. Then a hidden frame
   takes its place: the same script, loaded as a page loads one, with messages passed in both directions. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #scope
    #loaded

    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      this.#scope = frame.contentWindow
      this.#scope.postMessage = data => this.#deliver(this, data)
      this.#scope.importScripts = (...urls) => this.#loadAll(urls)
      this.#loaded = this.#load(url)
    }

    /* A worker takes no message while it loads, nor does this. */
    postMessage(data) {
      this.#loaded.then(() => this.#deliver(this.#scope, data))
    }

    terminate() {
      this.#scope.frameElement.remove()
    }

    #deliver(target, data) {
      target.dispatchEvent(new MessageEvent("message", { data }))
    }

    #loadAll(urls) {
      for (const url of urls) this.#loaded = this.#loaded.then(() => this.#load(url))
      return this.#loaded
    }

    #load(url) {
      return new Promise((resolve, reject) => {
        const script = this.#scope.document.createElement("script")
        script.src = url
        script.onload = resolve
        script.onerror = () => reject(new Error(`${url} cannot be loaded`))
        this.#scope.document.head.append(script)
      })
    }
  }
}
