try{let t=JSON.parse(localStorage.getItem("ui.theme")??'"system"');(t==="light"||t==="dark")&&(document.documentElement.dataset.theme=t)}catch{}
