"""What a folder of weights says of its model: `config.json` and the headers of its safetensors files, nothing else."""
